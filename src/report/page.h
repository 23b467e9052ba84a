// page.h — the page of a report, before its data.
#pragma once

#include <string_view>

namespace tenon {

// What `tenon report` fills in, inside a script element of type application/json. In the data, `<` must be
// written \u003c, so that no string of the model's can end that element.
inline constexpr std::string_view kPageDataPlace = "/*REPORT_DATA*/";

// The whole HTML file, with kPageDataPlace standing once where the data goes.
std::string_view page_template();

}  // namespace tenon
