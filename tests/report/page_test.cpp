// page_test.cpp — the page is whole, and has one place for the data. tests/report/browser_test.py opens it.
#include "report/page.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(PageTemplate, IsOneWholeHtmlFile) {
  EXPECT_TRUE(page_template().starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(page_template().ends_with("</html>\n"));
}

TEST(PageTemplate, HasOnePlaceForTheData) {
  const size_t place = page_template().find(kPageDataPlace);
  ASSERT_NE(place, std::string_view::npos);
  EXPECT_EQ(page_template().find(kPageDataPlace, place + 1), std::string_view::npos);
  EXPECT_TRUE(page_template().substr(0, place).ends_with(R"(<script type="application/json" id="data">)"));
}

TEST(PageTemplate, LoadsNothingFromElsewhere) {
  for (const std::string_view way : {" src=", "@import", "url(http"})
    EXPECT_EQ(page_template().find(way), std::string_view::npos) << way;
}

}  // namespace
}  // namespace tenon
