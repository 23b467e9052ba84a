#include "runtime/program_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/mistaken_file.h"
#include "base/write_file.h"
#include "target/target.h"

namespace tenon::runtime {
namespace {

static_assert(std::endian::native == std::endian::little);  // as the file is

// The first byte is no text, and line ends show whether the file was transferred as text.
constexpr char kMagic[8] = {'\x93', 'T', 'N', 'P', '\r', '\n', '\x1a', '\n'};
constexpr size_t kMostSections = 1024;
constexpr size_t kBlock = 64 << 10;  // that is hashed at once

struct Header {
  char magic[sizeof kMagic];
  uint32_t format;
  uint32_t sections;
  uint64_t size;  // of the file
  uint64_t hash;  // of what is before it, and of the entries
};

struct Entry {
  char name[40];  // filled up with zeros
  uint64_t offset, size, hash;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

uint64_t hash_of(const Header& header, const std::vector<Entry>& entries) {
  return hash_combine(hash_bytes(bytes_of(header).first(offsetof(Header, hash))),
                      hash_bytes(std::as_bytes(std::span(entries))));
}

// Hashes bytes that come bit by bit, block by block.
class BlockHash {
 public:
  void append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), kBlock - block_.size());
      if (count == kBlock) {
        add(bytes.first(count));
      } else {
        block_.insert(block_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
        if (block_.size() == kBlock)
          add(std::exchange(block_, {}));
      }
      bytes = bytes.subspan(count);
    }
  }

  uint64_t value() const { return hash_combine(hash_, hash_bytes(block_)); }

 private:
  void add(std::span<const std::byte> block) { hash_ = hash_combine(hash_, hash_bytes(block)); }

  uint64_t hash_ = 0;
  std::vector<std::byte> block_;
};

uint64_t hash_of(std::span<const std::byte> bytes) {
  BlockHash hash;
  hash.append(bytes);
  return hash.value();
}

// Calls `append` with the bytes of a section, and the zeros between its pieces.
template <class Append>
uint64_t append_pieces(const SectionToWrite& section, Append&& append) {
  static constexpr std::byte kZeros[kBlock] = {};
  uint64_t at = 0;
  const auto fill = [&](uint64_t to) {
    CHECK(at <= to, "the pieces of section {} overlap", section.name);
    for (; at < to; at += std::min<uint64_t>(to - at, sizeof kZeros))
      append(std::span(kZeros).first(std::min<uint64_t>(to - at, sizeof kZeros)));
  };
  for (const auto& [offset, bytes] : section.pieces) {
    fill(offset);
    append(bytes);
    at += bytes.size();
  }
  return at;
}

}  // namespace

std::shared_ptr<const ProgramFile> ProgramFile::open(const std::filesystem::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return checked({path.string(), file, file->bytes()});
}

std::shared_ptr<const ProgramFile> ProgramFile::in_memory(std::span<const std::byte> bytes) {
  const std::string name = "a program in memory";
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kCacheLine == 0)
    return checked({name, nullptr, bytes});
  const std::shared_ptr<const MappedFile> copy = MappedFile::copy(name, bytes);
  return checked({name, copy, copy->bytes()});
}

std::shared_ptr<const ProgramFile> ProgramFile::checked(ProgramFile&& file) {
  auto program = std::make_shared<ProgramFile>(std::move(file));
  with_context([&] { return program->name(); },
               [&] {
                 program->read_header();
                 for (const Section& section : program->sections_)
                   if (section.name != kWeightsSection)
                     program->check(section);
               });
  return program;
}

void ProgramFile::read_header() {
  const std::span<const std::byte> bytes = bytes_;
  Header header;
  if (bytes.size() < sizeof header || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    throw user_error("this is no saved program{}", hint_at_content(bytes));
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.format > kProgramFormat)
    throw user_error("a later version of Tenon saved this program, in format {}; this one reads format {}",
                     header.format, kProgramFormat);
  if (header.size > bytes.size())
    throw user_error("the saved program is cut off: {} of its {} bytes are there", bytes.size(), header.size);
  std::vector<Entry> entries(std::min<size_t>(header.sections, kMostSections));
  const size_t table = entries.size() * sizeof(Entry);
  const auto fits = [&](const Entry& entry) {
    return entry.name[sizeof entry.name - 1] == '\0' && entry.offset <= bytes.size() &&
           entry.size <= bytes.size() - entry.offset;
  };
  if (table <= bytes.size() - sizeof header)
    std::memcpy(entries.data(), bytes.data() + sizeof header, table);
  if (header.format == 0 || header.size < bytes.size() || header.sections > kMostSections ||
      table > bytes.size() - sizeof header || header.hash != hash_of(header, entries) ||
      !std::ranges::all_of(entries, fits))
    throw user_error("the saved program is damaged: its header is not as it was written");
  hash_ = header.hash;
  for (const Entry& entry : entries)
    sections_.push_back({entry.name, entry.offset, entry.size, entry.hash});
}

bool ProgramFile::has(std::string_view name) const {
  return std::ranges::find(sections_, name, &Section::name) != sections_.end();
}

const ProgramFile::Section& ProgramFile::find(std::string_view name) const {
  const auto found = std::ranges::find(sections_, name, &Section::name);
  if (found == sections_.end())
    throw user_error("{}: the saved program has no section \"{}\"", name_, name);
  return *found;
}

uint64_t ProgramFile::offset_of(std::string_view name) const { return find(name).offset; }

std::span<const std::byte> ProgramFile::bytes_of(std::string_view name) const {
  const Section& section = find(name);
  return bytes_.subspan(section.offset, section.size);
}

void ProgramFile::check(const Section& section) const {
  if (hash_of(bytes_of(section.name)) != section.hash)
    throw user_error("the saved program is damaged: its section \"{}\" is not as it was written",
                     section.name);
}

void ProgramFile::check_weights() const {
  with_context([&] { return name(); }, [&] { check(find(kWeightsSection)); });
}

void write_program_file(const std::filesystem::path& path, const std::vector<SectionToWrite>& sections) {
  Header header{.magic = {},
                .format = kProgramFormat,
                .sections = static_cast<uint32_t>(sections.size()),
                .size = sizeof(Header) + sections.size() * sizeof(Entry),
                .hash = 0};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::vector<Entry> entries;
  for (const SectionToWrite& section : sections) {
    Entry& entry = entries.emplace_back();
    CHECK(section.name.size() < sizeof entry.name, "the section {} has a long name", section.name);
    std::ranges::copy(section.name, entry.name);
    BlockHash hash;
    entry.size = append_pieces(section, [&](std::span<const std::byte> bytes) { hash.append(bytes); });
    entry.hash = hash.value();
    entry.offset = align_up(header.size, section.alignment);
    header.size = entry.offset + entry.size;
  }
  header.hash = hash_of(header, entries);
  write_file(path, [&](const std::filesystem::path& temporary) {
    FileWriter file(temporary);
    file.append(bytes_of(header));
    file.append(std::as_bytes(std::span(entries)));
    for (size_t i = 0; i < sections.size(); ++i) {
      file.append(std::string(entries[i].offset - file.size(), '\0'));
      append_pieces(sections[i], [&](std::span<const std::byte> bytes) { file.append(bytes); });
    }
    file.close();
  });
}

}  // namespace tenon::runtime
