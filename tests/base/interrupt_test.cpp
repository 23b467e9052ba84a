#include "base/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "base/child_process.h"
#include "base/temporary_folder.h"
#include "base/write_file.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

// How a process ends that sends itself a signal within `work`, which gets a function that does so. A child
// removes what it leaves as main does.
std::string end_within(const std::function<void(const std::function<void()>& signal)>& work,
                       int signal = SIGINT) {
  return run_in_child(60,
                      [&]() -> std::string {
                        work([&] {
                          ::kill(::getpid(), signal);
                          for (;;)
                            ::pause();
                        });
                        return "";
                      })
      .failure;
}

TEST(Interrupt, LeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  folder.write("a", "old");
  const auto interrupted = [&](const std::function<void()>& signal) {
    write_file(folder / "a", [&](const fs::path& temporary) {
      write_content(temporary, "half");
      signal();
    });
  };
  EXPECT_EQ(end_within(interrupted), "it crashed with signal 2");
  EXPECT_EQ(end_within(interrupted, SIGTERM), "it crashed with signal 15");
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(Interrupt, OfTheSecondFileLeavesNeither) {
  const TemporaryFolder folder;
  EXPECT_EQ(end_within([&](const std::function<void()>& signal) {
              write_files({{folder / "a", [](const fs::path& file) { write_content(file, "weights"); }},
                           {folder / "b", [&](const fs::path&) { signal(); }}});
            }),
            "it crashed with signal 2");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Interrupt, RemovesScratchFolders) {
  const TemporaryFolder folder;
  EXPECT_EQ(end_within([&](const std::function<void()>& signal) {
              ::setenv("TMPDIR", folder.path().c_str(), 1);
              const ScratchFolder scratch;
              write_file(scratch.path() / "a", "half");
              signal();
            }),
            "it crashed with signal 2");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Interrupt, IsIgnoredWhereItWas) {
  const auto before = ::signal(SIGINT, SIG_IGN);
  const ChildEnd end = run_in_child(60, [] {
    ::kill(::getpid(), SIGINT);
    return std::string("went on");
  });
  ::signal(SIGINT, before);
  EXPECT_EQ(end.report, "went on");
}

// The child of a child that is gone has nobody to report to.
TEST(Interrupt, EndsTheChildrenOfWhatItEnds) {
  const TemporaryFolder folder;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(end_within([&](const std::function<void()>& signal) {
              run_in_child(60, [&]() -> std::string {
                const pid_t parent = ::getppid();
                write_file(folder / "a", [&](const fs::path&) {
                  ::kill(parent, SIGINT);
                  for (;;)
                    ::pause();
                });
                return "";
              });
              signal();
            }),
            "it crashed with signal 2");
  ::close(ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // once all who could write are gone
  ::close(ends[0]);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace tenon
