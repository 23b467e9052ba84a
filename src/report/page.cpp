// page.cpp — page.html, which the build makes of the files under page/, as bytes of this program.
#include "report/page.h"

// The assembler finds the file in the folder that the build names with -I.
asm(R"(
  .section .rodata
  .global tenon_page_begin
  .global tenon_page_end
tenon_page_begin:
  .incbin "page.html"
tenon_page_end:
  .text
)");

extern "C" const char tenon_page_begin[];
extern "C" const char tenon_page_end[];

namespace tenon {

std::string_view page_template() { return {tenon_page_begin, tenon_page_end}; }

}  // namespace tenon
