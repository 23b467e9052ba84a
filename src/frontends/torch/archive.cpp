#include "frontends/torch/archive.h"

#include <algorithm>

#include "base/error.h"
#include "ops/elements.h"

namespace tenon::torch {
namespace {

constexpr uint64_t kLongestText = uint64_t{1} << 30;
// Text deflates to a thirtieth or so; what is larger than this and deflated to less than a hundredth is no
// program. Nor is a weight to unpack to a hundred times what its tensor needs.
constexpr uint64_t kSuspiciousSize = uint64_t{64} << 20, kLargestRatio = 100;

Extents known_sizes(const std::vector<SymInt>& sizes, std::string_view what) {
  Extents extents;
  for (const SymInt& size : sizes) {
    if (!size.is_constant() || *size.constant() < 0)
      throw user_error("its {} are [{}], but must be integers that are not negative", what,
                       fmt::join(sizes, ","));
    extents.push_back(*size.constant());
  }
  return extents;
}

// How many elements of its storage a tensor reaches over; nothing where that is beyond 64 bits.
std::optional<uint64_t> reach(const Extents& extents, const Extents& strides, int64_t offset) {
  if (std::ranges::find(extents, 0) != extents.end())
    return 0;
  unsigned __int128 last = static_cast<uint64_t>(offset);
  for (size_t i = 0; i < extents.size(); ++i)
    last += static_cast<unsigned __int128>(extents[i] - 1) * static_cast<uint64_t>(strides[i]);
  constexpr auto most = static_cast<unsigned __int128>(int64_t{1} << 60);
  return last < most ? std::optional(static_cast<uint64_t>(last) + 1) : std::nullopt;
}

// Strides of dimensions of one element say nothing.
bool is_row_major(const Extents& extents, const Extents& strides) {
  const Extents expected = row_major_strides(extents);
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] != 1 && strides[i] != expected[i])
      return false;
  return true;
}

}  // namespace

Archive::Archive(std::shared_ptr<const MappedFile> file) : zip_(std::move(file)) {
  // Everything lies in one folder, which has the name the archive was first saved under.
  constexpr std::string_view models = "models/", suffix = ".json";
  std::vector<std::string> found;
  for (const auto& [name, entry] : zip_.entries()) {
    const size_t slash = name.find('/');
    if (slash == std::string::npos)
      continue;
    const std::string_view rest = std::string_view(name).substr(slash + 1);
    if (!rest.starts_with(models) || !rest.ends_with(suffix))
      continue;
    root_ = name.substr(0, slash + 1);
    found.emplace_back(rest.substr(models.size(), rest.size() - models.size() - suffix.size()));
  }
  if (found.empty()) {
    const bool older = zip_.find("serialized_exported_program.json") != nullptr ||
                       std::ranges::any_of(zip_.entries(), [](const auto& each) {
                         return each.first.ends_with("/serialized_exported_program.json");
                       });
    if (older)
      throw unsupported(
          "this archive was written by an older PyTorch, which lays it out otherwise\n  hint: export the "
          "model again with "
          "PyTorch 2.11 to 2.13");
    throw user_error("this is no torch.export archive: it has no models/model.json");
  }
  const auto main = std::ranges::find(found, "model");
  if (main == found.end() && found.size() > 1)
    throw unsupported("the archive holds the models {}, and none of them is called model",
                      fmt::join(found, ", "));
  model_ = main == found.end() ? found.front() : *main;

  if (zip_.find(root_ + "byteorder") != nullptr && read_text("byteorder") != "little")
    throw unsupported("the numbers in the archive have their highest byte first");
  const std::string program = "models/" + model_ + ".json";
  program_ = with_context([&] { return program; }, [&] { return parse_program(read_text(program)); });
  weights_ = read_payloads("data/weights/" + model_ + "_weights_config.json");
  constants_ = read_payloads("data/constants/" + model_ + "_constants_config.json");
}

const ZipFile::Entry& Archive::entry(const std::string& path) const {
  const ZipFile::Entry* entry = zip_.find(root_ + path);
  if (entry == nullptr)
    throw user_error("the archive has no {}", path);
  return *entry;
}

std::string Archive::read_text(const std::string& path) const {
  const ZipFile::Entry& found = entry(path);
  if (found.size > kLongestText ||
      (found.size > kSuspiciousSize && found.size / kLargestRatio > found.packed_size))
    throw user_error("it would unpack from {} to {} bytes, which is no program", found.packed_size,
                     found.size);
  std::string text(found.size, '\0');
  zip_.read(found, std::as_writable_bytes(std::span(text)));
  return text;
}

Payloads Archive::read_payloads(const std::string& path) const {
  return with_context([&] { return path; }, [&] { return parse_payloads(read_text(path)); });
}

Literal Archive::weight(const std::string& name) {
  return with_context([&] { return fmt::format("weight \"{}\"", name); },
                      [&] {
                        const auto it = weights_.find(name);
                        if (it != weights_.end())
                          return payload("data/weights/", it->second);
                        // Buffers that are not part of a module's state are kept with the constants.
                        if (constants_.contains(name))
                          return constant(name);
                        throw user_error("the archive has none of this name");
                      });
}

Literal Archive::constant(const std::string& name) {
  return with_context([&] { return fmt::format("constant \"{}\"", name); },
                      [&] {
                        const auto it = constants_.find(name);
                        if (it == constants_.end())
                          throw user_error("the archive has none of this name");
                        return payload("data/constants/", it->second);
                      });
}

Literal Archive::payload(const std::string& folder, const Payload& payload) {
  if (payload.pickled)
    throw unsupported("it is pickled, and pickles are programs, which we do not run");
  const TensorMeta& meta = payload.meta;
  const Extents extents = known_sizes(meta.sizes, "sizes"), strides = known_sizes(meta.strides, "strides");
  const int64_t offset = known_sizes({meta.storage_offset}, "storage offset").front();
  const auto width = static_cast<uint64_t>(info(meta.dtype).bytes);
  const ZipFile::Entry& stored = entry(folder + payload.path);
  const auto elements = reach(extents, strides, offset);
  if (!elements || std::max(*elements, static_cast<uint64_t>(offset)) > stored.size / width)
    throw user_error("{} at offset {} with strides [{}] needs more than the {} bytes of {}",
                     describe(meta.dtype, extents), offset, fmt::join(strides, ","), stored.size,
                     folder + payload.path);
  if (!stored.deflated && is_row_major(extents, strides))
    return Literal::file_slice(meta.dtype, extents, zip_.file(),
                               stored.offset + static_cast<uint64_t>(offset) * width,
                               static_cast<uint64_t>(element_count(extents)) * width);
  if (stored.deflated && stored.size > kSuspiciousSize && stored.size / kLargestRatio > *elements * width)
    throw user_error("it would unpack to {} bytes for a tensor of {}", stored.size, *elements * width);
  const auto count = static_cast<int64_t>(stored.size / width);
  const auto storage = std::make_shared<Tensor>(
      stored.deflated ? unpacked(stored)
                      : Literal::file_slice(DType::U8, {static_cast<int64_t>(stored.size)}, zip_.file(),
                                            stored.offset, stored.size)
                            .tensor());
  const Tensor all(meta.dtype, {count}, storage, storage->bytes().first(static_cast<size_t>(count) * width));
  if (is_row_major(extents, strides))
    return Tensor(meta.dtype, extents, storage,
                  storage->bytes().subspan(static_cast<size_t>(offset) * width,
                                           static_cast<size_t>(element_count(extents)) * width));
  return gather_strided(all, extents, strides, offset);
}

const Tensor& Archive::unpacked(const ZipFile::Entry& entry) {
  if (const auto it = unpacked_.find(entry.name); it != unpacked_.end())
    return it->second;
  if (entry.size > memory_limit() - unpacked_bytes_)
    throw user_error("the weights would unpack to more than the {} bytes of memory of this machine",
                     memory_limit());
  unpacked_bytes_ += entry.size;
  Tensor bytes(DType::U8, {static_cast<int64_t>(entry.size)});
  zip_.read(entry, bytes.mutable_bytes());
  return unpacked_.emplace(entry.name, std::move(bytes)).first->second;
}

}  // namespace tenon::torch
