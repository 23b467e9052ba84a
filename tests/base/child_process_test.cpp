#include "base/child_process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "base/error.h"

namespace tenon {
namespace {

constexpr unsigned kSeconds = 60;

ChildEnd run(const std::function<std::string()>& work) { return run_in_child(kSeconds, work); }

TEST(ChildProcess, ReturnsWhatTheWorkReturns) {
  const std::string long_report(1'000'000, 'x');
  for (const std::string& report :
       {std::string(), std::string("two\nlines\n"), std::string(3, '\0'), long_report}) {
    const ChildEnd end = run([&] { return report; });
    EXPECT_EQ(end.report, report);
    EXPECT_EQ(end.failure, "");
  }
}

TEST(ChildProcess, LeavesTheParentAlone) {
  int number = 1;
  run([&] {
    number = 2;
    return "";
  });
  EXPECT_EQ(number, 1);
}

TEST(ChildProcess, SaysHowItFailed) {
  const auto failure = [](const std::function<void()>& work) {
    return run([&] {
             work();
             return "done";
           })
        .failure;
  };
  EXPECT_EQ(failure([] { ::raise(SIGKILL); }), "it crashed with signal 9");
  EXPECT_EQ(failure([] { ::_exit(3); }), "it exited with status 3");
  EXPECT_EQ(failure([] { ::_exit(0); }), "it ended before it was done");
  EXPECT_EQ(failure([] { ::raise(SIGALRM); }), "it did not end within 60 s");
  EXPECT_EQ(failure([] { throw std::runtime_error("not caught"); }), "it crashed with signal 6");
}

TEST(ChildProcess, ThatThereIsNoneToBeHadIsAnError) {
  // In a child, whose limits are its own. Root is exempt from the limit of processes, but not from that of
  // files.
  const ChildEnd end = run([] {
    rlimit usual;
    ::getrlimit(RLIMIT_NOFILE, &usual);
    const rlimit none{0, usual.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    try {
      run([] { return ""; });
    } catch (const UserError& error) {
      ::setrlimit(RLIMIT_NOFILE, &usual);  // sanitizers look at objects through files of their own
      return std::string(error.what());
    }
    return std::string("it ran");
  });
  EXPECT_EQ(end.report, "cannot make a pipe: Too many open files");
}

}  // namespace
}  // namespace tenon
