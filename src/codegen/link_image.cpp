#include "codegen/link_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/error.h"
#include "runtime/cpu/library_functions.h"
#include "runtime/program_file.h"

namespace tenon::codegen {

using runtime::align_up;
using runtime::KernelCode;

namespace {

constexpr uint64_t kFunctionAlignment = 64;  // of a kernel, and of a stub

// An object file as LLVM writes it, which is not checked any further.
class Object {
 public:
  explicit Object(const std::string& bytes) : bytes_(bytes) {
    header_ = read<Elf64_Ehdr>(0);
    CHECK(std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 && header_.e_type == ET_REL,
          "the code of a kernel is no ELF object");
    for (size_t i = 0; i < header_.e_shnum; ++i) {
      sections_.push_back(read<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr)));
      if (sections_.back().sh_type == SHT_SYMTAB)
        symbols_ = i;
    }
  }

  template <class T>
  T read(uint64_t offset) const {
    CHECK(offset + sizeof(T) <= bytes_.size(), "an object file ends at {}", bytes_.size());
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  std::string_view content(const Elf64_Shdr& section) const {
    return std::string_view(bytes_).substr(section.sh_offset, section.sh_size);
  }
  std::string_view name(const Elf64_Shdr& section) const {
    return string(sections_[header_.e_shstrndx], section.sh_name);
  }

  size_t symbol_count() const { return sections_[symbols_].sh_size / sizeof(Elf64_Sym); }
  Elf64_Sym symbol(size_t number) const {
    return read<Elf64_Sym>(sections_[symbols_].sh_offset + number * sizeof(Elf64_Sym));
  }
  std::string_view name(const Elf64_Sym& symbol) const {
    return string(sections_[sections_[symbols_].sh_link], symbol.st_name);
  }

  // Calls visit(relocation, target section).
  template <class Visit>
  void for_each_relocation(Visit&& visit) const {
    for (const Elf64_Shdr& section : sections_)
      if (section.sh_type == SHT_RELA)
        for (uint64_t at = 0; at < section.sh_size; at += sizeof(Elf64_Rela))
          visit(read<Elf64_Rela>(section.sh_offset + at), size_t{section.sh_info});
  }

 private:
  std::string_view string(const Elf64_Shdr& table, uint64_t offset) const {
    return bytes_.data() + table.sh_offset + offset;  // it ends with a zero
  }

  const std::string& bytes_;
  Elf64_Ehdr header_;
  std::vector<Elf64_Shdr> sections_;
  size_t symbols_ = 0;
};

class Linker {
 public:
  explicit Linker(Architecture architecture) : architecture_(architecture) {}

  Image link(std::span<const KernelCode> kernels) {
    std::vector<Object> objects;
    for (const KernelCode& kernel : kernels)
      objects.emplace_back(kernel.bytes);
    for (const Object& object : objects)
      place(object);
    for (const Object& object : objects)
      collect_imports(object);
    place_stubs();
    for (size_t i = 0; i < objects.size(); ++i) {
      relocate(objects[i], places_[i]);
      image_.entries.push_back(entries_of(objects[i], places_[i], kernels[i].regions));
    }
    return std::move(image_);
  }

 private:
  using Places = std::vector<std::optional<uint64_t>>;  // of the sections of an object

  // Unwinding does not come through kernels, which throw nothing.
  static bool is_loaded(const Object& object, const Elf64_Shdr& section) {
    return (section.sh_flags & SHF_ALLOC) != 0 && section.sh_size > 0 &&
           object.name(section) != ".eh_frame" && section.sh_type != SHT_X86_64_UNWIND;
  }

  void place(const Object& object) {
    Places& places = places_.emplace_back();
    image_.bytes.resize(align_up(image_.bytes.size(), kFunctionAlignment));
    for (const Elf64_Shdr& section : object.sections()) {
      std::optional<uint64_t>& at = places.emplace_back();
      if (!is_loaded(object, section))
        continue;
      CHECK((section.sh_flags & SHF_WRITE) == 0 && section.sh_type == SHT_PROGBITS,
            "the code of a kernel has a section {} that is no constant", object.name(section));
      at = align_up(image_.bytes.size(), std::max<uint64_t>(section.sh_addralign, 1));
      image_.bytes.resize(*at);
      image_.bytes += object.content(section);
    }
  }

  void collect_imports(const Object& object) {
    for (size_t i = 1; i < object.symbol_count(); ++i)
      if (const Elf64_Sym symbol = object.symbol(i); symbol.st_shndx == SHN_UNDEF) {
        const std::string name(object.name(symbol));
        CHECK(runtime::find_library_function(name) != nullptr, "the code of a kernel calls {}", name);
        if (imported_.emplace(name, image_.imports.names.size()).second)
          image_.imports.names.push_back(name);
      }
  }

  // A function outside is called by a stub in the image, which jumps to where the table says.
  void place_stubs() {
    const uint64_t page = runtime::page_of(architecture_);
    stubs_ = align_up(image_.bytes.size(), kFunctionAlignment);
    image_.imports.offset = align_up(stubs_ + imported_.size() * kStubSize, page);
    const uint64_t table = imported_.size() * sizeof(uint64_t);
    image_.bytes.resize(align_up(image_.imports.offset + table, page));
    for (size_t i = 0; i < imported_.size(); ++i)
      write_stub(stubs_ + i * kStubSize, image_.imports.offset + i * sizeof(uint64_t));
  }

  void write_stub(uint64_t at, uint64_t address) {
    if (architecture_ == Architecture::X86_64) {
      write<uint16_t>(at, 0x25ff);  // jmp *(%rip + offset of the address from here)
      write<int32_t>(at + 2, narrow<int32_t>(distance(at + 6, address)));
      return;
    }
    write<uint32_t>(at, 0x90000010 | page_distance(at, address));  // adrp x16, page
    write<uint32_t>(at + 4, 0xf9400210 | static_cast<uint32_t>(address % 4096 / 8)
                                             << 10);  // ldr x16, [x16, …]
    write<uint32_t>(at + 8, 0xd61f0200);              // br x16
  }

  void relocate(const Object& object, const Places& places) {
    object.for_each_relocation([&](const Elf64_Rela& relocation, size_t section) {
      if (!places[section])
        return;
      const Elf64_Sym symbol = object.symbol(ELF64_R_SYM(relocation.r_info));
      const bool is_outside = symbol.st_shndx == SHN_UNDEF;
      uint64_t to = 0;
      if (is_outside) {
        to = stubs_ + imported_.at(std::string(object.name(symbol))) * kStubSize;
      } else {
        CHECK(symbol.st_shndx < places.size() && places[symbol.st_shndx],
              "the code of a kernel names what is in none of its sections");
        to = *places[symbol.st_shndx] + symbol.st_value;
      }
      const Fixup fixup{
          .at = *places[section] + relocation.r_offset, .to = to, .addend = relocation.r_addend};
      const auto type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
      architecture_ == Architecture::X86_64 ? fix_x86(type, fixup) : fix_arm(type, fixup);
    });
  }

  struct Fixup {
    uint64_t at, to;
    int64_t addend;

    uint64_t target() const { return to + static_cast<uint64_t>(addend); }
  };

  void fix_x86(uint32_t type, const Fixup& fixup) {
    CHECK(type == R_X86_64_PC32 || type == R_X86_64_PLT32, "the code of a kernel has a relocation {}", type);
    write<int32_t>(fixup.at, narrow<int32_t>(distance(fixup.at, fixup.target())));
  }

  void fix_arm(uint32_t type, const Fixup& fixup) {
    const uint64_t to = fixup.target();
    const auto low = static_cast<uint32_t>(to % 4096);
    const auto set = [&](uint32_t bits) { write<uint32_t>(fixup.at, read<uint32_t>(fixup.at) | bits); };
    switch (type) {
      case R_AARCH64_PREL32:
        return write<int32_t>(fixup.at, narrow<int32_t>(distance(fixup.at, to)));
      case R_AARCH64_CALL26:
      case R_AARCH64_JUMP26: {
        const int64_t words = distance(fixup.at, to) / 4;
        CHECK(words >= -(1 << 25) && words < 1 << 25, "an image is too large for a call");
        return set(static_cast<uint32_t>(words) & 0x3ffffff);
      }
      case R_AARCH64_ADR_PREL_PG_HI21:
        return set(page_distance(fixup.at, to));
      case R_AARCH64_ADD_ABS_LO12_NC:
      case R_AARCH64_LDST8_ABS_LO12_NC:
        return set(low << 10);
      case R_AARCH64_LDST16_ABS_LO12_NC:
        return set(low / 2 << 10);
      case R_AARCH64_LDST32_ABS_LO12_NC:
        return set(low / 4 << 10);
      case R_AARCH64_LDST64_ABS_LO12_NC:
        return set(low / 8 << 10);
      case R_AARCH64_LDST128_ABS_LO12_NC:
        return set(low / 16 << 10);
      default:
        CHECK(false, "the code of a kernel has a relocation {}", type);
    }
  }

  std::vector<uint64_t> entries_of(const Object& object, const Places& places, size_t regions) const {
    std::map<std::string_view, uint64_t> known;
    for (size_t i = 1; i < object.symbol_count(); ++i)
      if (const Elf64_Sym symbol = object.symbol(i);
          symbol.st_shndx < places.size() && places[symbol.st_shndx])
        known.emplace(object.name(symbol), *places[symbol.st_shndx] + symbol.st_value);
    std::vector<uint64_t> entries;
    for (size_t i = 0; i < regions; ++i)
      entries.push_back(known.at(fmt::format("phase_{}", i)));
    return entries;
  }

  static int64_t distance(uint64_t from, uint64_t to) { return static_cast<int64_t>(to - from); }

  // In the bits of adrp. The image begins at a page.
  static uint32_t page_distance(uint64_t from, uint64_t to) {
    const int64_t pages = distance(from / 4096, to / 4096);
    CHECK(pages >= -(1 << 20) && pages < 1 << 20, "an image is too large for an address");
    const auto bits = static_cast<uint32_t>(pages);
    return (bits & 3) << 29 | (bits >> 2 & 0x7ffff) << 5;
  }

  template <class T>
  static T narrow(int64_t value) {
    CHECK(value == static_cast<T>(value), "an image is too large: an address is {} away", value);
    return static_cast<T>(value);
  }

  template <class T>
  void write(uint64_t at, T value) {
    std::memcpy(image_.bytes.data() + at, &value, sizeof value);
  }
  template <class T>
  T read(uint64_t at) const {
    T value;
    std::memcpy(&value, image_.bytes.data() + at, sizeof value);
    return value;
  }

  static constexpr uint64_t kStubSize = 16;

  const Architecture architecture_;
  Image image_;
  std::vector<Places> places_;              // of each object
  std::map<std::string, size_t> imported_;  // by name, where it is in the table
  uint64_t stubs_ = 0;
};

}  // namespace

Image link_image(std::span<const KernelCode> kernels, Architecture architecture) {
  return Linker(architecture).link(kernels);
}

}  // namespace tenon::codegen
