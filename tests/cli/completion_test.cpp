#include <gtest/gtest.h>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

class Completion : public CommandLine {
 protected:
  // What bash would offer for a line, a word a line, sorted.
  void expect_bash(const std::string& line, const std::string& offered) const {
    folder_.write("ask.bash",
                  "source <(tenon completion bash)\nCOMP_LINE='" + line +
                      "'\nCOMP_POINT=${#COMP_LINE}\nread -ra COMP_WORDS <<<\"$COMP_LINE\"\n_tenon\n"
                      "printf '%s\\n' \"${COMPREPLY[@]}\" | LC_ALL=C sort\n");
    expect_done("bash ask.bash", offered);
  }
};

TEST_F(Completion, BashCompletesCommandsAndOptions) {
  expect_bash("tenon ve", "verify\n");
  expect_bash("tenon verify builtin:tiny --sam", "--samples\n");
  expect_bash("tenon --ver", "--version\n");
  expect_bash("tenon -q ver", "verify\n");
  expect_bash("tenon --quiet verify builtin:tiny --sam", "--samples\n");
  expect_bash("tenon -q --ver", "--version\n");
  expect_bash("tenon nonsense --", "\n");
}

TEST_F(Completion, BashCompletesValues) {
  expect_bash("tenon print builtin:tiny --as h", "hlo\n");
  expect_bash("tenon print builtin:tiny --as=h", "hlo\n");  // bash replaces what follows the =
  expect_bash("tenon print --stage sch", "scheduled\n");
  expect_bash("tenon optimize m.onnx --passes simplify,merge-e", "simplify,merge-equal\n");
  expect_bash("tenon rules multiply-by-o", "multiply-by-one\n");
  expect_bash("tenon ops reduce_su", "reduce_sum\n");
  expect_bash("tenon tour bi", "bisect\n");
  expect_bash("tenon completion ", "bash\nfish\nzsh\n");
  expect_bash("tenon verify builtin:tiny --samples ", "\n");
}

TEST_F(Completion, BashCompletesModels) {
  expect_bash("tenon print builtin:resn", "resnet_block\n");  // bash replaces what follows the :
  for (const char* name : {"model.gguf", "model.onnx", "model.pt2", "model.tenon", "model.txt", "model.npz"})
    folder_.write(name, "");
  std::filesystem::create_directory(folder_ / "models");
  expect_bash("tenon print mod", "model.gguf\nmodel.onnx\nmodel.pt2\nmodel.tenon\nmodels\n");
  expect_bash("tenon run model.onnx --inputs mod", "model.npz\nmodels\n");
  expect_bash("tenon conformance model.t", "model.tenon\nmodel.txt\n");
}

TEST_F(Completion, FishCompletes) {
  if (shell("command -v fish").status != 0)
    GTEST_SKIP() << "fish is not installed";
  const auto expect_fish = [&](const std::string& line, const std::string& offered) {
    expect_done("HOME=\"$PWD\" fish -c \"tenon completion fish | source; complete -C '" + line + "'\"",
                offered);
  };
  expect_fish("tenon ve", "verify\n");
  expect_fish("tenon print builtin:resn", "builtin:resnet_block\n");
  expect_fish("tenon print builtin:tiny --as h", "hlo\n");
}

// On a terminal of its own, for zsh completes nowhere else.
TEST_F(Completion, ZshCompletes) {
  if (shell("command -v zsh").status != 0)
    GTEST_SKIP() << "zsh is not installed";
  for (const char* name : {"model.onnx", "model.npz", "other.txt", "other.tenon"})
    folder_.write(name, "");
  folder_.write("ask.zsh", R"(zmodload zsh/zpty
zpty -b shell "TERM=dumb HOME=$PWD zsh -f -i"
zpty -w shell 'PS1= PROMPT_EOL_MARK= ; unsetopt zle_bracketed_paste; autoload -U compinit; compinit -u -D'
zpty -w shell 'source <(tenon completion zsh)'
# What it makes of the line is what then runs: this writes it down.
zpty -w shell 'accept() { print -r -- "$BUFFER" >line; BUFFER=; zle accept-line }; zle -N accept; bindkey "^X" accept'
zpty -w -n shell "$1"$'\t\x18'
for ((i = 0; i < 3000; ++i)); do [[ ! -s line ]] || break; sleep 0.01; done
cat line
zpty -d shell
)");
  const auto expect_zsh = [&](const std::string& line, const std::string& completed) {
    expect_done("rm -f line; zsh -f ask.zsh '" + line + "'", completed + "\n");
  };
  expect_zsh("tenon verif", "tenon verify ");
  expect_zsh("tenon -q verif", "tenon -q verify ");
  expect_zsh("tenon print builtin:resn", "tenon print builtin:resnet_block ");
  expect_zsh("tenon print oth", "tenon print other.tenon ");
  expect_zsh("tenon run model.onnx --inputs mod", "tenon run model.onnx --inputs model.npz ");
}

TEST_F(Completion, ScriptsOfOtherShellsAreWellFormed) {
  for (const std::string shell_name : {"zsh", "fish"}) {
    if (shell("command -v " + shell_name).status != 0) {
      GTEST_LOG_(INFO) << shell_name << " is not installed, so its script was not looked at";
      continue;
    }
    expect_done("tenon completion " + shell_name + " >script && " + shell_name + " -n script", "");
  }
}

}  // namespace
}  // namespace tenon::cli
