// batcher.h — requests that wait for a model, run together as soon as it is free.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "model.h"

struct Job {
  Json request;
  Tensors inputs;
  std::function<void(int status, std::string json)> answer;  // called by the batcher's thread
};

class Batcher {
 public:
  // At most so many rows at once; and so many requests wait, others are answered 503.
  Batcher(const Model& model, int64_t most_rows, size_t most_waiting);
  ~Batcher();  // after those that wait

  void add(Job job);

 private:
  void run();
  std::vector<Job> take();
  void answer(std::vector<Job>& jobs) const;
  void answer_one(Job& job) const;

  const Model& model_;
  const int64_t most_rows_;
  const size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  bool ends_ = false;
  std::thread thread_;
};
