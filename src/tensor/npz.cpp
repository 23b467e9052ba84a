// npz.cpp — the archive half of npy.h: a zip file of .npy files.
#include <zip.h>

#include <set>

#include "base/mapped_file.h"
#include "base/mistaken_file.h"
#include "base/write_file.h"
#include "tensor/npy.h"
#include "tensor/npy_format.h"

namespace tenon {
namespace {

using Archive = std::unique_ptr<zip_t, decltype([](zip_t* archive) { zip_discard(archive); })>;
using EntryFile = std::unique_ptr<zip_file_t, decltype([](zip_file_t* file) { zip_fclose(file); })>;

std::string error_text(zip_error_t& error) {
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

// What people take for an archive by mistake.
std::string_view hint_for(std::span<const std::byte> bytes) {
  constexpr std::string_view kNpy = "\x93NUMPY";
  const bool is_npy =
      std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).starts_with(kNpy);
  return is_npy ? "\n  hint: this is one array, an .npy, which has no name; numpy.savez(FILE, NAME=ARRAY) "
                  "writes an .npz"
                : hint_at_content(bytes);
}

Archive open_archive(std::span<const std::byte> bytes) {
  zip_error_t error;
  zip_error_init_with_code(&error, ZIP_ER_NOZIP);
  // libzip takes an empty file for an empty archive.
  zip_source_t* source =
      bytes.empty() ? nullptr : zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  zip_t* archive = source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, &error);
  if (archive == nullptr) {
    zip_source_free(source);
    throw user_error("this is no readable .npz archive: {}{}", error_text(error), hint_for(bytes));
  }
  zip_error_fini(&error);
  return Archive(archive);
}

void read_fully(zip_file_t* file, std::span<std::byte> target) {
  while (!target.empty()) {
    const zip_int64_t got = zip_fread(file, target.data(), target.size());
    if (got < 0)
      throw user_error("its bytes cannot be read: {}", zip_error_strerror(zip_file_get_error(file)));
    if (got == 0)
      throw user_error("its bytes cannot be read: they end {} bytes too early", target.size());
    target = target.subspan(static_cast<size_t>(got));
  }
}

Tensor read_entry(zip_t* archive, zip_uint64_t index, uint64_t size) {
  const EntryFile file(zip_fopen_index(archive, index, 0));
  if (file == nullptr)
    throw user_error("its bytes cannot be read: {}", zip_strerror(archive));
  auto buffer = std::make_shared<Tensor>(DType::U8, Extents{static_cast<int64_t>(size)});
  const std::span<std::byte> bytes = buffer->mutable_bytes();

  // The header comes first and must explain the size, so that a little file cannot make us unpack gigabytes
  // that no array in it asks for.
  const size_t head = std::min<uint64_t>(size, largest_npy_header);
  read_fully(file.get(), bytes.first(head));
  const NpyHeader header = parse_npy_header(bytes.first(head));
  check_npy_size(header, size);
  read_fully(file.get(), bytes.subspan(head));
  std::byte beyond;
  if (zip_fread(file.get(), &beyond, 1) != 0)  // the end is where the checksum is verified
    throw user_error("its bytes cannot be read: {}", zip_error_strerror(zip_file_get_error(file.get())));
  return read_npy_items(header, bytes.subspan(header.data_offset), buffer);
}

// The images must live until the archive is closed, which is when libzip reads them.
void add_entry(zip_t* archive, const std::string& name, const NpyImage& image) {
  const std::span<const std::byte> items = image.items.bytes();
  zip_buffer_fragment_t fragments[] = {
      {reinterpret_cast<zip_uint8_t*>(const_cast<char*>(image.header.data())), image.header.size()},
      {reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(items.data())), items.size()}};
  zip_source_t* source = zip_source_buffer_fragment(archive, fragments, 2, 0);
  if (source == nullptr)
    throw user_error("{}", zip_strerror(archive));
  const zip_int64_t index = zip_file_add(archive, (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    throw user_error("array \"{}\": {}", name, zip_strerror(archive));
  }
  // Stored and undated: equal tensors make equal files.
  constexpr zip_uint16_t january_1980 = 1 << 5 | 1;
  const auto entry = static_cast<zip_uint64_t>(index);
  zip_set_file_compression(archive, entry, ZIP_CM_STORE, 0);
  zip_file_set_dostime(archive, entry, 0, january_1980, 0);
}

void write_archive(const std::filesystem::path& path, const NamedTensors& tensors) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    throw user_error("{}", error_text(error));
  }
  std::vector<NpyImage> images;
  images.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors)
    add_entry(archive.get(), name, images.emplace_back(make_npy_image(tensor)));
  if (zip_close(archive.get()) != 0)
    throw user_error("{}", zip_strerror(archive.get()));
  static_cast<void>(archive.release());  // closed
}

}  // namespace

NamedTensors read_npz(const std::filesystem::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return with_context(
      [&] { return path.string(); },
      [&] {
        const Archive archive = open_archive(file->bytes());
        NamedTensors tensors;
        std::set<std::string> names;
        uint64_t total = 0;
        const auto count = static_cast<zip_uint64_t>(zip_get_num_entries(archive.get(), 0));
        for (zip_uint64_t index = 0; index < count; ++index) {
          zip_stat_t stat;
          if (zip_stat_index(archive.get(), index, 0, &stat) != 0)
            throw user_error("entry {} cannot be read: {}", index, zip_strerror(archive.get()));
          std::string name = stat.name;
          if (!name.ends_with(".npy"))
            throw user_error("the entry \"{}\" is no .npy file", name);
          name.resize(name.size() - 4);
          if (!names.insert(name).second)
            throw user_error("two arrays have the name \"{}\"", name);
          if (stat.size > memory_limit() - total)
            throw user_error("its arrays need more than the {} bytes of memory of this machine",
                             memory_limit());
          total += stat.size;
          tensors.emplace_back(name,
                               with_context([&] { return fmt::format("array \"{}\"", name); },
                                            [&] { return read_entry(archive.get(), index, stat.size); }));
        }
        return tensors;
      });
}

void write_npz(const std::filesystem::path& path, const NamedTensors& tensors) {
  write_file(path, [&](const std::filesystem::path& temporary) {
    if (tensors.empty())
      throw user_error("there are no arrays, and libzip writes no empty archive");
    write_archive(temporary, tensors);
  });
}

}  // namespace tenon
