// server.cpp — a server of KServe's protocol, version 2, by REST: one saved program, requests that wait run
// together.
//
//   server PROGRAM.tnp [--name NAME] [--port N] [--threads N] [--rows N]
//
// It listens on 127.0.0.1 (port 0: any that is free), says where, and ends at SIGTERM or SIGINT, when what it
// began is answered.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "batcher.h"
#include "http.h"

namespace {

constexpr size_t kMostWaiting = 1024, kMostConnections = 4096;
constexpr size_t kOtherFiles = 64;  // of the process, beside those of connections
constexpr std::chrono::seconds kPatience(
    30);  // with a request that has begun, and a response that is not read

using Clock = std::chrono::steady_clock;

struct Options {
  std::string program, name = "model";
  int port = 8000, threads = 0;
  int64_t rows = 64;
};

// What ends the server.
sigset_t ends() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// That are accepted; others are closed at once.
size_t most_connections() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  return std::min(kMostConnections, std::max<size_t>(files.rlim_cur, 2 * kOtherFiles) - kOtherFiles);
}

int checked(int result, const char* what) {
  if (result < 0)
    throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  return result;
}

struct Connection {
  RequestReader reader;
  std::string to_send;
  bool is_waiting = false;  // for the model: what comes meanwhile is read later
  bool closes = false;      // once all is sent
  Clock::time_point last = Clock::now();
};

class Server {
 public:
  explicit Server(const Options& options)
      : model_(options.name, options.program, options.threads),
        epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll")) {
    listener_ = checked(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket");
    const int yes = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(options.port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    checked(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), "bind");
    checked(listen(listener_, SOMAXCONN), "listen");
    socklen_t size = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);

    const sigset_t signals = ends();
    signals_ = checked(signalfd(-1, &signals, SFD_CLOEXEC), "signalfd");
    answered_ = checked(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd");
    for (const int file : {listener_, signals_, answered_})
      watch(EPOLL_CTL_ADD, file, EPOLLIN);
    batcher_.emplace(model_, options.rows, kMostWaiting);
    std::printf("%s at http://127.0.0.1:%d\n", options.name.c_str(), ntohs(address.sin_port));
    std::fflush(stdout);
  }

  void run() {
    while (!ends_ || has_unanswered()) {
      std::array<epoll_event, 64> events;
      const int count = epoll_wait(epoll_, events.data(), events.size(), 1000);
      for (int i = 0; i < count; ++i)
        handle(events[static_cast<size_t>(i)]);
      close_idle();
    }
  }

 private:
  void handle(const epoll_event& event) {
    const int file = event.data.fd;
    if (file == listener_)
      accept_all();
    else if (file == signals_)
      end();
    else if (file == answered_)
      send_answers();
    else if (connections_.contains(file))
      serve(file, event.events);
  }

  void watch(int operation, int file, uint32_t events) const {
    epoll_event event{};
    event.events = events;
    event.data.fd = file;
    epoll_ctl(epoll_, operation, file, &event);
  }

  bool has_unanswered() const {
    return std::ranges::any_of(connections_, [](const auto& each) {
      return each.second.is_waiting || !each.second.to_send.empty();
    });
  }

  void end() {
    ends_ = true;
    watch(EPOLL_CTL_DEL, listener_, 0);
    watch(EPOLL_CTL_DEL, signals_, 0);
    close(listener_);
  }

  void accept_all() {
    for (;;) {
      const int file = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (file < 0)
        return;
      if (connections_.size() >= most_connections_) {
        close(file);
        continue;
      }
      const int yes = 1;
      setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      connections_.emplace(file, Connection{});
      watch(EPOLL_CTL_ADD, file, EPOLLIN);
    }
  }

  void forget(int file) {
    close(file);
    connections_.erase(file);
    std::erase_if(asked_, [&](const auto& each) { return each.second == file; });
  }

  void close_idle() {
    if (Clock::now() - last_look_ < std::chrono::seconds(1))
      return;
    last_look_ = Clock::now();
    std::vector<int> late;
    for (const auto& [file, connection] : connections_)
      if (!connection.is_waiting && (connection.reader.has_begun() || !connection.to_send.empty()) &&
          Clock::now() - connection.last > kPatience)
        late.push_back(file);
    for (const int file : late)
      forget(file);
  }

  void serve(int file, uint32_t events) {
    Connection& connection = connections_.at(file);
    if ((events & (EPOLLERR | EPOLLHUP)) != 0 || ((events & EPOLLIN) != 0 && !receive(file, connection))) {
      forget(file);
      return;
    }
    take_requests(file, connection);
    send_what_is_there(file, connection);
  }

  // False once there will be no more.
  static bool receive(int file, Connection& connection) {
    std::array<char, 65536> bytes;
    const ssize_t count = recv(file, bytes.data(), bytes.size(), 0);
    if (count <= 0)
      return count < 0 && (errno == EAGAIN || errno == EINTR);
    connection.reader.append({bytes.data(), static_cast<size_t>(count)});
    connection.last = Clock::now();
    return true;
  }

  void take_requests(int file, Connection& connection) {
    while (!connection.is_waiting && !connection.closes) {
      try {
        const std::optional<Request> request = connection.reader.next();
        if (!request)
          return;
        connection.closes = !request->keep_alive || ends_;
        answer(file, connection, *request);
      } catch (const HttpError& error) {
        connection.closes = connection.closes || error.closes();
        respond(connection, error.status(), {{"error", error.what()}});
      }
    }
  }

  static void respond(Connection& connection, int status, const Json& json) {
    connection.to_send +=
        write_response(status, json.dump(-1, ' ', false, Json::error_handler_t::replace), !connection.closes);
  }

  void answer(int file, Connection& connection, const Request& request) {
    const std::string model = "/v2/models/" + model_.name();
    if (request.path == model + "/infer") {
      expect_method(request, "POST");
      infer(file, connection, request.body);
      return;
    }
    const std::map<std::string, Json> answers = {
        {"/v2/health/live", {{"live", true}}},
        {"/v2/health/ready", {{"ready", true}}},
        {"/v2", {{"name", "tenon"}, {"version", tenon_version()}, {"extensions", Json::array()}}},
        {model, model_.metadata()},
        {model + "/ready", {{"name", model_.name()}, {"ready", true}}}};
    const auto found = answers.find(request.path);
    if (found == answers.end())
      throw HttpError(404, "there is no " + request.path + "; the model is " + model);
    expect_method(request, "GET");
    respond(connection, 200, found->second);
  }

  static void expect_method(const Request& request, const std::string& method) {
    if (request.method != method)
      throw HttpError(405, request.path + " wants " + method);
  }

  void infer(int file, Connection& connection, const std::string& body) {
    Json json = Json::parse(body, nullptr, false);
    if (!json.is_object())
      throw HttpError(400, "the body is no JSON object");
    Tensors inputs = model_.read_inputs(json);
    const uint64_t number = ++last_number_;
    batcher_->add({std::move(json), std::move(inputs), [this, number](int status, std::string answer) {
                     {
                       const std::lock_guard lock(mutex_);
                       answers_.push_back({number, status, std::move(answer)});
                     }
                     const uint64_t one = 1;
                     [[maybe_unused]] const ssize_t written = write(answered_, &one, sizeof one);
                   }});
    asked_.emplace(number, file);
    connection.is_waiting = true;
    watch(EPOLL_CTL_MOD, file, 0);
  }

  // Of those that are still connected.
  void send_answers() {
    uint64_t count;
    [[maybe_unused]] const ssize_t got = read(answered_, &count, sizeof count);
    std::vector<Answer> answers;
    {
      const std::lock_guard lock(mutex_);
      answers.swap(answers_);
    }
    for (const Answer& answer : answers) {
      const auto asked = asked_.find(answer.number);
      if (asked == asked_.end())
        continue;
      const int file = asked->second;
      asked_.erase(asked);
      Connection& connection = connections_.at(file);
      connection.is_waiting = false;
      connection.last = Clock::now();
      connection.to_send += write_response(answer.status, answer.json, !connection.closes);
      take_requests(file, connection);
      send_what_is_there(file, connection);
    }
  }

  void send_what_is_there(int file, Connection& connection) {
    while (!connection.to_send.empty()) {
      const ssize_t count = send(file, connection.to_send.data(), connection.to_send.size(), MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN && errno != EINTR) {
        forget(file);
        return;
      }
      if (count < 0)
        break;
      connection.to_send.erase(0, static_cast<size_t>(count));
      connection.last = Clock::now();
    }
    if (connection.to_send.empty() && connection.closes && !connection.is_waiting)
      forget(file);
    else
      watch(EPOLL_CTL_MOD, file,
            !connection.to_send.empty() ? EPOLLOUT
            : connection.is_waiting     ? 0U
                                        : EPOLLIN);
  }

  struct Answer {
    uint64_t number;
    int status;
    std::string json;
  };

  const Model model_;
  const size_t most_connections_ = most_connections();
  const int epoll_;
  int listener_, signals_, answered_;
  bool ends_ = false;
  Clock::time_point last_look_ = Clock::now();  // for connections that are idle
  std::map<int, Connection> connections_;
  std::map<uint64_t, int> asked_;  // requests that run, and whose they are
  uint64_t last_number_ = 0;
  std::mutex mutex_;
  std::vector<Answer> answers_;
  std::optional<Batcher> batcher_;  // last, so that it ends first
};

int64_t read_number(std::string_view text) {
  int64_t number = -1;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || number < 0 || number > 65535)
    throw std::runtime_error(std::string(text) + " is no number from 0 to 65535");
  return number;
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--") && options.program.empty()) {
      options.program = word;
      continue;
    }
    if (++i == argc)
      throw std::runtime_error(word + " wants a value");
    if (word == "--name")
      options.name = argv[i];
    else if (word == "--port")
      options.port = static_cast<int>(read_number(argv[i]));
    else if (word == "--threads")
      options.threads = static_cast<int>(read_number(argv[i]));
    else if (word == "--rows")
      options.rows = read_number(argv[i]);
    else
      throw std::runtime_error("there is no option " + word);
  }
  if (options.program.empty())
    throw std::runtime_error("usage: server PROGRAM.tnp [--name NAME] [--port N] [--threads N] [--rows N]");
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const sigset_t signals = ends();
  sigprocmask(SIG_BLOCK, &signals, nullptr);  // before there are other threads: the server asks for them
  try {
    Server(read_options(argc, argv)).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "server: %s\n", error.what());
    return 2;
  }
}
