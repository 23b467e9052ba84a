// npz.cpp — the archive half of npy.h: a zip file of .npy files.
#include <algorithm>

#include "base/mapped_file.h"
#include "base/mistaken_file.h"
#include "base/write_file.h"
#include "base/zip_file.h"
#include "base/zip_writer.h"
#include "tensor/npy.h"
#include "tensor/npy_format.h"

namespace tenon {
namespace {

// What people take for an archive by mistake.
std::string_view hint_for(std::span<const std::byte> bytes) {
  constexpr std::string_view kNpy = "\x93NUMPY";
  const bool is_npy =
      std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).starts_with(kNpy);
  return is_npy ? "\n  hint: this is one array, an .npy, which has no name; numpy.savez(FILE, NAME=ARRAY) "
                  "writes an .npz"
                : hint_at_content(bytes);
}

ZipFile open_archive(const std::shared_ptr<const MappedFile>& file) {
  try {
    return ZipFile(file, ZipFile::Names::Any);
  } catch (const UnsupportedError&) {
    throw;  // it is an archive
  } catch (const UserError& error) {
    throw user_error("{}{}", error.what(), hint_for(file->bytes()));
  }
}

// As they were written.
std::vector<const ZipFile::Entry*> in_order(const ZipFile& archive) {
  std::vector<const ZipFile::Entry*> entries;
  for (const auto& [name, entry] : archive.entries())
    entries.push_back(&entry);
  std::ranges::sort(entries, {}, &ZipFile::Entry::place);
  return entries;
}

Tensor read_entry(const ZipFile& archive, const ZipFile::Entry& entry) {
  // The header comes first and must explain the size, so that a little file cannot make us unpack gigabytes
  // that no array in it asks for.
  std::vector<std::byte> head(std::min(entry.size, largest_npy_header));
  archive.read_first(entry, head);
  const NpyHeader header = parse_npy_header(head);
  check_npy_size(header, entry.size);
  auto buffer = std::make_shared<Tensor>(DType::U8, Extents{static_cast<int64_t>(entry.size)});
  archive.read(entry, buffer->mutable_bytes());
  return read_npy_items(header, buffer->bytes().subspan(header.data_offset), buffer);
}

}  // namespace

NamedTensors read_npz(const std::filesystem::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return with_context(
      [&] { return path.string(); },
      [&] {
        const ZipFile archive = open_archive(file);
        NamedTensors tensors;
        uint64_t total = 0;
        for (const ZipFile::Entry* entry : in_order(archive)) {
          std::string name = entry->name;
          if (!name.ends_with(".npy"))
            throw user_error("the entry \"{}\" is no .npy file", name);
          name.resize(name.size() - 4);
          if (entry->size > memory_limit() - total)
            throw user_error("its arrays need more than the {} bytes of memory of this machine",
                             memory_limit());
          total += entry->size;
          tensors.emplace_back(name, with_context([&] { return fmt::format("array \"{}\"", name); },
                                                  [&] { return read_entry(archive, *entry); }));
        }
        return tensors;
      });
}

void write_npz(const std::filesystem::path& path, const NamedTensors& tensors) {
  write_file(path, [&](const std::filesystem::path& temporary) {
    FileWriter file(temporary);
    ZipWriter archive(file);
    for (const auto& [name, tensor] : tensors) {
      const NpyImage image = make_npy_image(tensor);
      with_context(
          [&] { return fmt::format("array \"{}\"", name); },
          [&] {
            archive.add(name + ".npy", {std::as_bytes(std::span(image.header)), image.items.bytes()});
          });
    }
    archive.finish();
    file.close();
  });
}

}  // namespace tenon
