#include "verify/conformance.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/proto.h"
#include "frontends/onnx/tensor_proto.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "verify/compare.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kSecondsPerCase = 60;

// Some cases store bf16 as the unsigned integers of the same bits.
Datum as_declared(Datum datum, const Type& type) {
  if (type.is_tensor() && std::holds_alternative<Tensor>(datum)) {
    const Tensor& tensor = datum.tensor();
    if (type.as_tensor().dtype == DType::BF16 && tensor.dtype() == DType::U16) {
      Tensor bits(DType::BF16, tensor.extents());
      std::ranges::copy(tensor.bytes(), bits.mutable_bytes().begin());
      return bits;
    }
  }
  return datum;
}

Datum read(const fs::path& path, const Type& type) {
  const auto kind = type.is_tensor()     ? onnx::DatumKind::Tensor
                    : type.is_sequence() ? onnx::DatumKind::Sequence
                                         : onnx::DatumKind::Optional;
  return as_declared(onnx::read_datum(path, kind), type);
}

// The inputs of one data set. Old models list weights among their inputs, and data sets then count those too.
Data read_inputs(const fs::path& set, const Graph& graph, const onnx::GraphProto& proto) {
  size_t files = 0;
  while (fs::exists(set / fmt::format("input_{}.pb", files)))
    ++files;
  Data inputs;
  for (int64_t i = 0; i < graph.input_count(); ++i) {
    size_t number = static_cast<size_t>(i);
    if (files == proto.input.size())
      number = static_cast<size_t>(std::ranges::find(proto.input, std::string_view(graph.input(i).name()),
                                                     &onnx::ValueInfoProto::name) -
                                   proto.input.begin());
    inputs.push_back(read(set / fmt::format("input_{}.pb", number), graph.input(i).type()));
  }
  return inputs;
}

bool is_random(Graph& graph) {
  bool random = false;
  for_each_graph(graph, [&](const Graph& each) {
    for (const Node* node : each.nodes())
      random |= node->op().traits.random;
  });
  return random;
}

// Everything a case says, inside its own process.
CaseResult run_here(const fs::path& folder) {
  CaseResult result;
  try {
    const onnx::Model model = onnx::read_model(folder / "model.onnx");
    for (const onnx::OperatorSetId& opset : model.proto.opset_import)
      if (opset.domain.empty() || opset.domain == "ai.onnx")
        result.opset = opset.version;
    const std::unique_ptr<Graph> graph = onnx::read_onnx(folder / "model.onnx");
    if (const Types types = graph->output_types(); !types.empty() && types.front().is_tensor())
      result.dtype = name(types.front().as_tensor().dtype);
    if (const std::vector<std::string> problems = lint(*graph); !problems.empty())
      throw InternalError("lint: " + problems.front());
    double relative = 1e-3, absolute = 1e-7;
    if (std::ifstream tolerances(folder / "tol.txt"); tolerances)
      tolerances >> relative >> absolute;
    const bool random = is_random(*graph);
    for (int set = 0; fs::exists(folder / fmt::format("test_data_set_{}", set)); ++set) {
      const fs::path data = folder / fmt::format("test_data_set_{}", set);
      const Data outputs = evaluate(*graph, read_inputs(data, *graph, model.proto.graph));
      for (size_t i = 0; i < outputs.size(); ++i) {
        const fs::path file = data / fmt::format("output_{}.pb", i);
        if (!fs::exists(file))
          continue;
        const Datum expected = read(file, graph->outputs()[i].type());
        std::string mismatch = first_mismatch(outputs[i], expected, relative, absolute);
        if (random && type_of(outputs[i]) == type_of(expected))
          mismatch.clear();
        if (!mismatch.empty()) {
          result.status = CaseStatus::Wrong;
          result.detail = fmt::format("output \"{}\": {}", graph->output_names()[i], mismatch);
          return result;
        }
      }
    }
    result.status = CaseStatus::Pass;
  } catch (const UnsupportedError& error) {
    result.status = CaseStatus::Unsupported;
    result.detail = error.what();
  } catch (const std::exception& error) {
    result.status = CaseStatus::Error;
    result.detail = error.what();
  }
  return result;
}

void write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(fd, text.data() + at, text.size() - at);
    if (written <= 0)
      return;
    at += static_cast<size_t>(written);
  }
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  return text;
}

}  // namespace

std::string_view name(CaseStatus status) {
  constexpr std::string_view names[] = {"pass", "wrong", "error", "unsupported"};
  return names[static_cast<size_t>(status)];
}

std::vector<fs::path> find_cases(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw user_error("{} is not a folder", folder.string());
  std::vector<fs::path> cases;
  if (fs::exists(folder / "model.onnx"))
    cases.push_back(folder);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_directory() && fs::exists(entry.path() / "model.onnx"))
      cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  return cases;
}

CaseResult run_case(const fs::path& folder) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw InternalError(fmt::format("no pipe: {}", std::strerror(errno)));
  const pid_t child = ::fork();
  if (child < 0)
    throw InternalError(fmt::format("no process: {}", std::strerror(errno)));
  if (child == 0) {
    ::close(ends[0]);
    ::alarm(kSecondsPerCase);
    const CaseResult result = run_here(folder);
    write_all(ends[1], fmt::format("{} {} {} {}", static_cast<int>(result.status), result.opset,
                                   result.dtype.empty() ? "-" : result.dtype, result.detail));
    ::_exit(0);
  }
  ::close(ends[1]);
  const std::string report = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  CaseResult result;
  if (WIFSIGNALED(status)) {
    result.detail = WTERMSIG(status) == SIGALRM ? fmt::format("it did not end within {} s", kSecondsPerCase)
                                                : fmt::format("it crashed with signal {}", WTERMSIG(status));
    return result;
  }
  std::istringstream fields(report);
  int code = static_cast<int>(CaseStatus::Error);
  fields >> code >> result.opset >> result.dtype;
  result.status = static_cast<CaseStatus>(code);
  fields.get();
  result.detail.assign(std::istreambuf_iterator<char>(fields), {});
  return result;
}

}  // namespace tenon
