#include "codegen/data_object.h"

#include <elf.h>

#include <array>
#include <cstring>

#include "base/error.h"
#include "base/write_file.h"
#include "runtime/program_file.h"

namespace tenon::codegen {
namespace {

// Sections by their numbers, and where their names are among these.
enum Number : uint16_t { kNone, kData, kSymbols, kStrings, kStack, kCount };
constexpr char kNames[] = "\0.rodata\0.symtab\0.strtab\0.note.GNU-stack";
constexpr uint32_t kDataName = 1, kSymbolsName = 9, kStringsName = 17, kStackName = 25;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

Elf64_Ehdr header_of(Architecture architecture, uint64_t sections) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = architecture == Architecture::X86_64 ? EM_X86_64 : EM_AARCH64;
  header.e_version = EV_CURRENT;
  header.e_shoff = sections;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kCount;
  header.e_shstrndx = kStrings;
  return header;
}

}  // namespace

void write_data_object(const std::filesystem::path& existing, Architecture architecture,
                       const std::string& symbol, std::span<const std::byte> bytes) {
  if (bytes.size() > kMostDataBytes)
    throw user_error("an object holds at most {} bytes, but these are {}", kMostDataBytes, bytes.size());
  // The names of sections first, which all end in a zero, and then that of the symbol.
  const std::string strings = std::string(kNames, sizeof kNames) + symbol + '\0';
  std::array<Elf64_Sym, 2> symbols{};
  symbols[1] = {.st_name = sizeof kNames,
                .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
                .st_other = STV_DEFAULT,
                .st_shndx = kData,
                .st_value = 0,
                .st_size = bytes.size()};
  std::array<Elf64_Shdr, kCount> sections{};
  uint64_t end = sizeof(Elf64_Ehdr);
  const auto place = [&](Number number, uint32_t name, uint32_t type, uint64_t size, uint64_t alignment) {
    Elf64_Shdr& section = sections[number];
    section.sh_name = name;
    section.sh_type = type;
    section.sh_offset = runtime::align_up(end, alignment);
    section.sh_size = size;
    section.sh_addralign = alignment;
    end = section.sh_offset + size;
  };
  place(kData, kDataName, SHT_PROGBITS, bytes.size(), kCacheLine);
  sections[kData].sh_flags = SHF_ALLOC;
  place(kSymbols, kSymbolsName, SHT_SYMTAB, sizeof symbols, alignof(Elf64_Sym));
  sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);
  sections[kSymbols].sh_link = kStrings;
  sections[kSymbols].sh_info = 1;  // the first that is global
  place(kStrings, kStringsName, SHT_STRTAB, strings.size(), 1);
  place(kStack, kStackName, SHT_PROGBITS, 0, 1);  // no code here wants a stack that may be executed
  const uint64_t table = runtime::align_up(end, alignof(Elf64_Shdr));
  FileWriter file(existing);
  const auto append_at = [&](uint64_t offset, std::span<const std::byte> content) {
    file.append(std::string(offset - file.size(), '\0'));
    file.append(content);
  };
  file.append(bytes_of(header_of(architecture, table)));
  append_at(sections[kData].sh_offset, bytes);
  append_at(sections[kSymbols].sh_offset, bytes_of(symbols));
  append_at(sections[kStrings].sh_offset, std::as_bytes(std::span(strings)));
  append_at(table, bytes_of(sections));
  file.close();
}

}  // namespace tenon::codegen
