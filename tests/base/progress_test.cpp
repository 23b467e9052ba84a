#include "base/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/child_process.h"

namespace tenon {
namespace {

using namespace std::chrono_literals;

// What work writes to stderr, where that is a terminal. In a child, whose stderr is its own.
std::string shown_on_terminal(const std::function<void()>& work) {
  const ChildEnd end = run_in_child(60, [&]() -> std::string {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0)
      return "there is no terminal to be had";
    const int other_end = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
    ::dup2(other_end, STDERR_FILENO);
    work();
    ::close(other_end);
    ::close(STDERR_FILENO);  // the last end: reading ends once all is read
    std::string text;
    char letter;
    while (::read(terminal, &letter, 1) == 1)
      text += letter;
    return text;
  });
  EXPECT_EQ(end.failure, "");
  return end.report;
}

const std::string kErase = "\r\033[K";

// A clock that stands still until it is set forward.
struct Clock {
  Progress::Time time;
  std::function<Progress::Time()> now() {
    return [this] { return time; };
  }
};

TEST(Progress, IsShownAfterTwoSecondsAndErasedInTheEnd) {
  EXPECT_EQ(shown_on_terminal([] {
              Clock clock;
              Progress progress("running", 3, clock.now());
              progress.step("one");
              clock.time += 2s;
              progress.step("two");
            }),
            kErase + "running: 2 of 3, 4 s left, two" + kErase);
}

TEST(Progress, NeedNotKnowTheTotal) {
  EXPECT_EQ(shown_on_terminal([] {
              Clock clock;
              Progress progress("running", 0, clock.now());
              clock.time += 2s;
              progress.step("one");
            }),
            kErase + "running: one" + kErase);
}

TEST(Progress, IsNotShownForShortTasks) {
  EXPECT_EQ(shown_on_terminal([] {
              Clock clock;
              Progress progress("running", 1, clock.now());
              clock.time += 1999ms;
              progress.step("one");
              progress.clear();
            }),
            "");
}

TEST(Progress, IsShownTenTimesASecondAtMost) {
  EXPECT_EQ(shown_on_terminal([] {
              Clock clock;
              Progress progress("running", 3, clock.now());
              clock.time += 2s;
              progress.step("one");
              clock.time += 99ms;
              progress.step("two");
              clock.time += 1ms;
              progress.step("three");
            }),
            kErase + "running: 1 of 3, one" + kErase + "running: 3 of 3, 1 s left, three" + kErase);
}

TEST(Progress, MakesRoomForOthersToWrite) {
  EXPECT_EQ(shown_on_terminal([] {
              Clock clock;
              Progress progress("running", 2, clock.now());
              clock.time += 2s;
              progress.step("one");
              progress.clear();
              std::fputs("a result; ", stderr);
              clock.time += 1s;
              progress.step("two");
            }),
            kErase + "running: 1 of 2, one" + kErase + "a result; " + kErase +
                "running: 2 of 2, 3 s left, two" + kErase);
}

TEST(Progress, IsShownOnlyOnTerminals) {
  testing::internal::CaptureStderr();
  {
    Clock clock;
    Progress progress("running", 1, clock.now());
    clock.time += 2s;
    progress.step("one");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace tenon
