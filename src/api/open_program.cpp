// open_program.cpp — saved programs, from files and from memory.
#include "api/program.h"

using namespace tenon;
using namespace tenon::api;

namespace {

// The program in what `read` makes of a file.
template <class Read>
tenon_status open(const tenon_open_options* options, tenon_program** program, Read&& read) {
  return guard([&] {
    tenon_program*& made = given(program, "program");
    const tenon_open_options asked = read_options(options);
    const std::shared_ptr<const runtime::ProgramFile> file = read();
    if (asked.check_weights != 0)
      file->check_weights();
    made = new tenon_program(load_program(*file, asked.target == nullptr ? "" : asked.target),
                             {.type = TENON_DEVICE_CPU, .index = 0});
  });
}

}  // namespace

tenon_status tenon_open(const char* path, const tenon_open_options* options, tenon_program** program) {
  return open(options, program, [&] { return runtime::ProgramFile::open(&given(path, "path")); });
}

tenon_status tenon_open_memory(const void* bytes, size_t size, const tenon_open_options* options,
                               tenon_program** program) {
  return open(options, program, [&] {
    if (size > 0 && bytes == nullptr)
      throw user_error("bytes is NULL");
    return runtime::ProgramFile::in_memory({static_cast<const std::byte*>(bytes), size});
  });
}
