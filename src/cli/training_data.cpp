#include "cli/training_data.h"

#include <algorithm>
#include <numeric>

#include "base/philox.h"

namespace tenon::cli {
namespace {

Tensor rows_of(const Tensor& array, std::span<const int64_t> rows) {
  Extents extents = array.extents();
  extents.front() = static_cast<int64_t>(rows.size());
  Tensor chosen(array.dtype(), std::move(extents));
  const size_t bytes = array.bytes().size() / static_cast<size_t>(array.extent(0));
  std::byte* to = chosen.mutable_bytes().data();
  for (const int64_t row : rows) {
    to = std::copy_n(array.bytes().data() + static_cast<size_t>(row) * bytes, bytes, to);
  }
  return chosen;
}

}  // namespace

TrainingData::TrainingData(std::vector<Tensor> arrays, int64_t batch, Order order)
    : arrays_(std::move(arrays)),
      batch_(batch),
      batches_(arrays_.front().extent(0) / batch),
      dropped_(arrays_.front().extent(0) % batch),
      order_(order),
      rows_(static_cast<size_t>(arrays_.front().extent(0))) {
  CHECK(batches_ > 0, "{} examples for batches of {}", arrays_.front().extent(0), batch);
}

Data TrainingData::batch(int64_t step) {
  if (const int64_t epoch = step / batches_; epoch != epoch_)
    arrange(epoch);
  const auto first = static_cast<size_t>(step % batches_ * batch_);
  const std::span<const int64_t> rows = std::span(rows_).subspan(first, static_cast<size_t>(batch_));
  Data chosen;
  for (const Tensor& array : arrays_)
    chosen.emplace_back(rows_of(array, rows));
  return chosen;
}

// Fisher and Yates' shuffle. What it draws depends on the seed, the epoch and the row alone, so that training
// resumes at any step as if it had not been interrupted.
void TrainingData::arrange(int64_t epoch) {
  epoch_ = epoch;
  std::iota(rows_.begin(), rows_.end(), 0);
  if (!order_.shuffles)
    return;
  for (size_t i = rows_.size() - 1; i > 0; --i)
    std::swap(rows_[i], rows_[philox(order_.seed, static_cast<uint64_t>(epoch), i)[0] % (i + 1)]);
}

Tensor rows_between(const Tensor& array, int64_t first, int64_t end) {
  std::vector<int64_t> rows(static_cast<size_t>(end - first));
  std::iota(rows.begin(), rows.end(), first);
  return rows_of(array, rows);
}

Tensor first_rows(const Tensor& array, int64_t count) { return rows_between(array, 0, count); }

}  // namespace tenon::cli
