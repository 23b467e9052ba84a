// fused_ops.cpp — what fusion makes of elementwise chains, softmax and norms, beside a copy of the same
// elements and beside loops written by hand, in one run: fused_ops FOLDER [THREADS [SECONDS]].
//
// FOLDER holds the models (bench/models). All work on 4096 x 4096 floats, so each must read and write
// 64 MiB. The loops by hand are what a careful engineer writes with vectors: exact to a few units in the last
// place (the error function to 2e-7), one pass over the elements, or one row in cache.
#include <algorithm>
#include <barrier>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <tenon/tenon.hpp>
#include <thread>
#include <vector>

namespace {

constexpr int64_t kRows = 4096, kColumns = 4096;
constexpr int kLanes = 16;
typedef float Floats __attribute__((vector_size(4 * kLanes), aligned(4)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes), aligned(4)));

// --- loops by hand ---

Floats load(const float* at) { return *reinterpret_cast<const Floats*>(at); }
void store(float* at, Floats value) { *reinterpret_cast<Floats*>(at) = value; }
Floats all(float value) { return Floats{} + value; }
Floats larger(Floats a, Floats b) { return a > b ? a : b; }
Floats smaller(Floats a, Floats b) { return a < b ? a : b; }

// e to the x: 2 to the n, times a polynomial in what is left over.
Floats exp(Floats x) {
  x = smaller(larger(x, all(-87.3F)), all(88.7F));
  const Floats magic = all(12582912.0F);  // adding it rounds to whole numbers
  const Floats n = (x * 1.44269504F + magic) - magic;
  const Floats r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  Floats p = all(1.0F / 720);
  for (const float coefficient : {1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F})
    p = p * r + coefficient;
  const Ints exponent = (__builtin_convertvector(n, Ints) + 127) << 23;
  return p * reinterpret_cast<Floats>(exponent);
}

// Abramowitz and Stegun, 7.1.26.
Floats erf(Floats x) {
  const Floats size = x < 0 ? -x : x;
  const Floats t = 1.0F / (1.0F + 0.3275911F * size);
  Floats p = all(1.061405429F);
  for (const float coefficient : {-1.453152027F, 1.421413741F, -0.284496736F, 0.254829592F})
    p = p * t + coefficient;
  const Floats result = 1.0F - p * t * exp(-size * size);
  return x < 0 ? -result : result;
}

void chain_sigmoid(const float* x, float* y) {
  for (int64_t i = 0; i < kColumns; i += kLanes) {
    const Floats value = larger(load(x + i) * 2.0F + 1.0F, all(0)) * 0.5F;
    store(y + i, 1.0F / (1.0F + exp(-value)));
  }
}

void gelu(const float* x, float* y) {
  for (int64_t i = 0; i < kColumns; i += kLanes) {
    const Floats value = load(x + i);
    store(y + i, value * (erf(value * 0.70710678F) + 1.0F) * 0.5F);
  }
}

void softmax(const float* x, float* y) {
  Floats most = load(x);
  for (int64_t i = kLanes; i < kColumns; i += kLanes)
    most = larger(most, load(x + i));
  float largest = most[0];
  for (int lane = 1; lane < kLanes; ++lane)
    largest = std::max(largest, most[lane]);
  Floats sums = all(0);
  for (int64_t i = 0; i < kColumns; i += kLanes) {
    const Floats power = exp(load(x + i) - largest);
    store(y + i, power);
    sums += power;
  }
  float total = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    total += sums[lane];
  const float scale = 1 / total;
  for (int64_t i = 0; i < kColumns; i += kLanes)
    store(y + i, load(y + i) * scale);
}

void copy(const float* x, float* y) { std::memcpy(y, x, 4 * kColumns); }

// --- threads of our own, which wait for work together ---

class Team {
 public:
  explicit Team(int threads) : barrier_(threads), count_(threads) {
    for (int i = 1; i < threads; ++i)
      threads_.emplace_back([this, i] {
        for (barrier_.arrive_and_wait(); !done_; barrier_.arrive_and_wait()) {
          work_(i);
          barrier_.arrive_and_wait();
        }
      });
  }
  ~Team() {
    done_ = true;
    barrier_.arrive_and_wait();
    for (std::thread& thread : threads_)
      thread.join();
  }

  void run(const std::function<void(int)>& work) {
    work_ = work;
    barrier_.arrive_and_wait();
    work_(0);
    barrier_.arrive_and_wait();
  }
  // Every row once, each thread a part of them.
  void for_rows(const float* x, float* y, void (*row)(const float*, float*)) {
    run([&](int thread) {
      for (int64_t i = kRows * thread / count_; i < kRows * (thread + 1) / count_; ++i)
        row(x + i * kColumns, y + i * kColumns);
    });
  }

 private:
  std::barrier<> barrier_;
  int count_;
  bool done_ = false;
  std::function<void(int)> work_;
  std::vector<std::thread> threads_;
};

// --- measuring ---

struct Contender {
  std::string name;
  std::function<void()> run;
  std::vector<double> times = {};  // in milliseconds

  double median() const { return times[times.size() / 2]; }
};

double milliseconds_of(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// One after another, so that what slows the machine down for a while slows all of them.
void measure(std::vector<Contender>& contenders, double seconds) {
  for (Contender& each : contenders)
    each.run();
  double spent = 0;
  while (spent < 1000 * seconds || contenders.front().times.size() < 11)
    for (Contender& each : contenders) {
      each.times.push_back(milliseconds_of(each.run));
      spent += each.times.back();
    }
  for (Contender& each : contenders)
    std::sort(each.times.begin(), each.times.end());
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (const float difference = std::fabs(a[i] - b[i]); !(difference <= largest))  // NaN is larger than all
      largest = difference;
  return largest;
}

class Bench {
 public:
  Bench(std::string folder, int threads, double seconds)
      : folder_(std::move(folder)), threads_(threads), seconds_(seconds), team_(threads) {
    for (size_t i = 0; i < x_.size(); ++i)
      x_[i] = std::sin(static_cast<float>(i % 1009) * 0.37F) * 4;
    for (size_t i = 0; i < weights_.size(); ++i)
      weights_[i] = std::cos(static_cast<float>(i)) + 1.5F;
  }

  void compare(const std::string& name, void (*by_hand)(const float*, float*)) {
    const tenon::Program program = tenon::compile(tenon::Model(folder_ + "/" + name + ".tenon"));
    const int64_t matrix[] = {kRows, kColumns}, row[] = {kColumns};
    std::vector<tenon_tensor> inputs{tenon::input<float>(x_, matrix)};
    while (inputs.size() < program.inputs().size())
      inputs.push_back(tenon::input<float>(weights_, row));
    std::vector<tenon_tensor> outputs{tenon::output<float>(y_)};
    std::vector<Contender> contenders;
    contenders.push_back({"tenon", [&] { program.run(inputs, outputs, {.threads = threads_, .seed = 0}); }});
    contenders.push_back({"copy", [&] { team_.for_rows(x_.data(), z_.data(), copy); }});
    if (by_hand != nullptr)
      contenders.push_back({"by hand", [&] { team_.for_rows(x_.data(), z_.data(), by_hand); }});
    measure(contenders, seconds_);
    const double own = contenders[0].median(), copied = contenders[1].median();
    std::printf("%-14s %8.2f ms  copy %8.2f ms  %5.1f %% of its bandwidth", name.c_str(), own, copied,
                100 * copied / own);
    if (by_hand != nullptr) {
      const double hand = contenders[2].median();
      std::printf("  by hand %8.2f ms  %5.2fx its time, differs by %.1e", hand, own / hand,
                  static_cast<double>(largest_difference(y_, z_)));
    }
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  std::string folder_;
  int threads_;
  double seconds_;
  Team team_;
  std::vector<float> x_ = std::vector<float>(kRows * kColumns), y_ = x_, z_ = x_;
  std::vector<float> weights_ = std::vector<float>(kColumns);
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "fused_ops FOLDER [THREADS [SECONDS]]\n");
    return 2;
  }
  Bench bench(arguments[1], count > 2 ? std::max(std::atoi(arguments[2]), 1) : 2,
              count > 3 ? std::atof(arguments[3]) : 3.0);
  bench.compare("chain", nullptr);
  bench.compare("layer_norm", nullptr);
  bench.compare("rms_norm", nullptr);
  bench.compare("chain_sigmoid", chain_sigmoid);
  bench.compare("gelu", gelu);
  bench.compare("softmax", softmax);
}
