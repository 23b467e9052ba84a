#include "batcher.h"

#include "http.h"

namespace {

std::string error_json(const std::string& message) {
  return Json{{"error", message}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Batcher::Batcher(const Model& model, int64_t most_rows, size_t most_waiting)
    : model_(model), most_rows_(most_rows), most_waiting_(most_waiting), thread_([this] { run(); }) {}

Batcher::~Batcher() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Batcher::add(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= most_waiting_)
      throw HttpError(503, "too many requests wait");
    waiting_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void Batcher::run() {
  for (;;) {
    std::vector<Job> jobs = take();
    if (jobs.empty())
      return;
    answer(jobs);
  }
}

// The first that waits, and those right behind it that go with it. Empty in the end.
std::vector<Job> Batcher::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
  std::vector<Job> jobs;
  for (int64_t rows = 0; !waiting_.empty(); waiting_.pop_front()) {
    Job& next = waiting_.front();
    if (!jobs.empty()) {
      if (!model_.is_batched() || !Model::go_together(jobs.front().inputs, next.inputs) ||
          rows + Model::count_rows(next.inputs) > most_rows_)
        break;
    }
    rows += model_.is_batched() ? Model::count_rows(next.inputs) : 0;
    jobs.push_back(std::move(next));
  }
  return jobs;
}

// Where requests cannot run together, as one of them is at fault, each runs alone.
void Batcher::answer(std::vector<Job>& jobs) const {
  if (jobs.size() > 1) {
    std::vector<const Tensors*> inputs;
    for (const Job& job : jobs)
      inputs.push_back(&job.inputs);
    try {
      const std::vector<Tensors> outputs = model_.run(inputs);
      std::vector<std::string> answers;
      for (size_t i = 0; i < jobs.size(); ++i)
        answers.push_back(model_.write_outputs(jobs[i].request, outputs[i]).dump());
      for (size_t i = 0; i < jobs.size(); ++i)
        jobs[i].answer(200, std::move(answers[i]));
      return;
    } catch (const std::exception&) {
    }
  }
  for (Job& job : jobs)
    answer_one(job);
}

void Batcher::answer_one(Job& job) const {
  try {
    const Tensors* const inputs = &job.inputs;
    job.answer(200, model_.write_outputs(job.request, model_.run({&inputs, 1}).front()).dump());
  } catch (const HttpError& error) {
    job.answer(error.status(), error_json(error.what()));
  } catch (const std::exception& error) {
    job.answer(500, error_json(error.what()));
  }
}
