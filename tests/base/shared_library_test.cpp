#include "base/shared_library.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/temporary_folder.h"

namespace tenon {
namespace {

// The C library's mathematics, which every Linux has, and where it is.
const LibrarySearch kMathematics{.names = {"libnone.so", "libm.so.6"}};

TEST(SharedLibrary, IsFoundByTheFirstNameThatIsThere) {
  const SharedLibrary library(kMathematics);
  double (*cosine)(double) = nullptr;
  library.find("cos", cosine);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_NE(library.path().find("libm.so.6"), std::string::npos);
}

TEST(SharedLibrary, IsTakenFromTheFoldersNamedFirst) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(SharedLibrary(kMathematics).path(), folder / "libmine.so");
  const SharedLibrary library({.names = {"libmine.so", "libm.so.6"}, .first = {"/none", folder.path()}});
  EXPECT_EQ(library.path(), (folder / "libmine.so").string());
}

TEST(SharedLibrary, IsTakenFromOtherFoldersLast) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(SharedLibrary(kMathematics).path(), folder / "libmine.so");
  EXPECT_EQ(SharedLibrary({.names = {"libmine.so", "libm.so.6"}, .then = {folder.path()}}).path(),
            SharedLibrary(kMathematics).path());
  EXPECT_EQ(SharedLibrary({.names = {"libmine.so"}, .then = {folder.path()}}).path(),
            (folder / "libmine.so").string());
}

TEST(SharedLibrary, SaysWhereItWasLookedFor) {
  expect_error<UserError>(
      [] {
        SharedLibrary({.names = {"libnone.so.2", "libnone.so"}, .first = {"/a"}, .then = {"/b", "/c"}});
      },
      "there is no libnone.so.2 or libnone.so\n"
      "  looked for it in: /a, where the system looks for libraries, /b, /c");
}

TEST(SharedLibrary, SaysWhyAFileCannotBeLoaded) {
  const TemporaryFolder folder;
  const std::string file = folder.write("libmine.so", "no library").string();
  expect_error<UserError>([&] { SharedLibrary({.names = {"libmine.so"}, .first = {folder.path()}}); },
                          "libmine.so cannot be loaded\n  " + file + ": file too short");
}

TEST(SharedLibrary, SaysWhichFunctionIsMissing) {
  const SharedLibrary library(kMathematics);
  double (*function)(double) = nullptr;
  expect_error<UserError>([&] { library.find("no_function", function); },
                          library.path() + " has no function no_function: its version is too old");
}

}  // namespace
}  // namespace tenon
