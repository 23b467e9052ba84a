#include "model.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "http.h"

namespace {

constexpr size_t kMostRank = 32;

// --- elements, which JSON has as numbers and booleans

struct Datatype {
  int32_t dtype;
  const char* name;
  size_t bytes;
  void (*read)(const Json& from, std::byte* to);
  Json (*write)(const std::byte* from);
};

template <class T>
T read_number(const Json& from) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const bool fits = from.is_number_unsigned()
                          ? std::in_range<T>(from.get<uint64_t>())
                          : from.is_number_integer() && std::in_range<T>(from.get<int64_t>());
    if (!fits)
      throw HttpError(400, "data holds " + from.dump() + ", which is not in the range of its datatype");
  }
  return from.get<T>();
}

template <class T>
void read_element(const Json& from, std::byte* to) {
  const T value = read_number<T>(from);
  std::memcpy(to, &value, sizeof value);
}

template <class T>
Json write_element(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
constexpr Datatype datatype(int32_t dtype, const char* name) {
  return {dtype, name, sizeof(T), read_element<T>, write_element<T>};
}

constexpr Datatype kDatatypes[] = {
    datatype<double>(TENON_F64, "FP64"),     datatype<float>(TENON_F32, "FP32"),
    datatype<int64_t>(TENON_I64, "INT64"),   datatype<int32_t>(TENON_I32, "INT32"),
    datatype<int16_t>(TENON_I16, "INT16"),   datatype<int8_t>(TENON_I8, "INT8"),
    datatype<uint64_t>(TENON_U64, "UINT64"), datatype<uint32_t>(TENON_U32, "UINT32"),
    datatype<uint16_t>(TENON_U16, "UINT16"), datatype<uint8_t>(TENON_U8, "UINT8"),
    datatype<bool>(TENON_BOOL, "BOOL"),
};

const Datatype& datatype_of(const tenon_port& port) {
  const auto* const found = std::ranges::find(kDatatypes, port.dtype, &Datatype::dtype);
  if (found == std::end(kDatatypes))
    throw std::runtime_error(std::string(port.name) + " is " + port.type +
                             ", which JSON has no elements for");
  return *found;
}

size_t count_elements(const std::vector<int64_t>& sizes) {
  constexpr size_t kMost = 64 << 20;  // no request has more
  size_t count = 1;
  for (const int64_t size : sizes) {
    if (size < 0 || (size > 0 && count > kMost / static_cast<size_t>(size)))
      throw HttpError(400, "shape is not one of a tensor");
    count *= static_cast<size_t>(size);
  }
  return count;
}

// The elements may be nested as the tensor's dimensions are, or not.
void read_elements(const Json& data, const Datatype& datatype, std::vector<std::byte>& to, size_t& at,
                   size_t depth) {
  if (data.is_array()) {
    if (depth == kMostRank)
      throw HttpError(400, "data is nested too deep");
    for (const Json& each : data)
      read_elements(each, datatype, to, at, depth + 1);
    return;
  }
  if (datatype.dtype == TENON_BOOL ? !data.is_boolean() : !data.is_number())
    throw HttpError(400, std::string("data holds what is no ") + datatype.name);
  if (at == to.size())
    throw HttpError(400, "data has more elements than shape says");
  datatype.read(data, to.data() + at);
  at += datatype.bytes;
}

Tensor read_tensor(const Json& from, const tenon_port& port) {
  const Datatype& datatype = datatype_of(port);
  if (from.at("datatype").get<std::string>() != datatype.name)
    throw HttpError(400, std::string("input ") + port.name + " has datatype " + datatype.name + ", but " +
                             from.at("datatype").dump() + " is given");
  Tensor tensor{.sizes = from.at("shape").get<std::vector<int64_t>>(), .elements = {}};
  bool fits = tensor.sizes.size() == static_cast<size_t>(port.rank);
  for (size_t i = 0; fits && i < tensor.sizes.size(); ++i)
    fits = port.sizes[i] == -1 || port.sizes[i] == tensor.sizes[i];
  if (!fits)
    throw HttpError(400, std::string("input ") + port.name + " must be " + port.type + ", but has shape " +
                             from.at("shape").dump());
  tensor.elements.resize(count_elements(tensor.sizes) * datatype.bytes);
  size_t at = 0;
  read_elements(from.at("data"), datatype, tensor.elements, at, 0);
  if (at < tensor.elements.size())
    throw HttpError(400, "data has fewer elements than shape says");
  return tensor;
}

Json describe(const std::vector<const tenon_port*>& ports) {
  Json all = Json::array();
  for (const tenon_port* port : ports)
    all.push_back({{"name", port->name},
                   {"datatype", datatype_of(*port).name},
                   {"shape", std::vector<int64_t>(port->sizes, port->sizes + port->rank)}});
  return all;
}

std::vector<tenon_tensor> tensors_of(Tensors& tensors, const std::vector<const tenon_port*>& ports) {
  std::vector<tenon_tensor> all;
  for (size_t i = 0; i < tensors.size(); ++i)
    all.push_back({.struct_size = sizeof(tenon_tensor),
                   .data = tensors[i].elements.data(),
                   .bytes = tensors[i].elements.size(),
                   .dtype = ports[i]->dtype,
                   .rank = static_cast<int32_t>(tensors[i].sizes.size()),
                   .sizes = tensors[i].sizes.data(),
                   .strides = nullptr,
                   .device = {}});
  return all;
}

}  // namespace

Model::Model(std::string name, const std::string& path, int threads)
    : name_(std::move(name)), threads_(threads) {
  tenon_program* program = nullptr;
  if (tenon_open(path.c_str(), nullptr, &program) != TENON_OK)
    throw std::runtime_error(tenon_error_message());
  program_.reset(program);
  inputs_ = ports(tenon_program_count_inputs, tenon_program_input);
  outputs_ = ports(tenon_program_count_outputs, tenon_program_output);
  metadata();
  is_batched_ = has_rows_everywhere();
}

std::vector<const tenon_port*> Model::ports(CountPorts count, FindPort find) const {
  std::vector<const tenon_port*> all;
  for (size_t i = 0; i < count(program_.get()); ++i) {
    all.push_back(find(program_.get(), i));
    if (all.back()->rank < 0)
      throw std::runtime_error(std::string(all.back()->name) + " has no fixed rank");
  }
  return all;
}

// The first dimension of each is the same symbol, which is nowhere else.
bool Model::has_rows_everywhere() const {
  const char* rows = nullptr;
  for (const auto* all : {&inputs_, &outputs_})
    for (const tenon_port* port : *all) {
      if (port->rank == 0 || port->sizes[0] != -1 ||
          (rows != nullptr && std::strcmp(rows, port->dimensions[0]) != 0))
        return false;
      rows = port->dimensions[0];
      for (int32_t i = 1; i < port->rank; ++i)
        if (std::strstr(port->dimensions[i], rows) != nullptr)
          return false;
    }
  return !inputs_.empty() && rows != nullptr && std::strcmp(rows, "?") != 0;
}

Json Model::metadata() const {
  return {
      {"name", name_}, {"platform", "tenon"}, {"inputs", describe(inputs_)}, {"outputs", describe(outputs_)}};
}

Tensors Model::read_inputs(const Json& request) const {
  try {
    const Json& given = request.at("inputs");
    if (!given.is_array() || given.size() != inputs_.size())
      throw HttpError(400, "the model takes " + std::to_string(inputs_.size()) + " inputs");
    if (request.contains("id") && !request["id"].is_string())
      throw HttpError(400, "id is no string");
    if (request.contains("outputs"))
      for (const Json& wanted : request["outputs"])
        if (!wanted.at("name").is_string())
          throw HttpError(400, "the name of an output is no string");
    Tensors tensors;
    for (const tenon_port* port : inputs_) {
      const auto found =
          std::ranges::find_if(given, [&](const Json& each) { return each.at("name") == port->name; });
      if (found == given.end())
        throw HttpError(400, std::string("input ") + port->name + " is missing");
      tensors.push_back(read_tensor(*found, *port));
    }
    // Else rows of one request would be taken for those of another.
    if (is_batched_ && std::ranges::any_of(tensors, [&](const Tensor& each) {
          return each.sizes.front() != count_rows(tensors);
        }))
      throw HttpError(400, "the inputs have different numbers of rows");
    return tensors;
  } catch (const Json::exception& error) {
    throw HttpError(400, error.what());
  }
}

Json Model::write_outputs(const Json& request, const Tensors& outputs) const {
  Json response = {{"model_name", name_}, {"outputs", Json::array()}};
  if (request.contains("id"))
    response["id"] = request["id"];
  const auto is_wanted = [&](const char* name) {
    const auto wanted = request.find("outputs");
    return wanted == request.end() || std::ranges::any_of(*wanted, [&](const Json& each) {
             return each.is_object() && each.value("name", "") == name;
           });
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_wanted(outputs_[i]->name))
      continue;
    const Datatype& datatype = datatype_of(*outputs_[i]);
    Json data = Json::array();
    for (size_t at = 0; at < outputs[i].elements.size(); at += datatype.bytes)
      data.push_back(datatype.write(outputs[i].elements.data() + at));
    response["outputs"].push_back({{"name", outputs_[i]->name},
                                   {"datatype", datatype.name},
                                   {"shape", outputs[i].sizes},
                                   {"data", std::move(data)}});
  }
  return response;
}

bool Model::go_together(const Tensors& a, const Tensors& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return std::equal(x.sizes.begin() + 1, x.sizes.end(), y.sizes.begin() + 1, y.sizes.end());
  });
}

std::vector<Tensors> Model::run(std::span<const Tensors* const> requests) const {
  if (requests.size() == 1)
    return {run_once(*requests.front())};
  Tensors joined = *requests.front();
  for (const Tensors* request : requests.subspan(1))
    for (size_t i = 0; i < joined.size(); ++i) {
      joined[i].sizes.front() += (*request)[i].sizes.front();
      joined[i].elements.insert(joined[i].elements.end(), (*request)[i].elements.begin(),
                                (*request)[i].elements.end());
    }
  const Tensors outputs = run_once(joined);
  const auto all_rows = static_cast<size_t>(count_rows(joined));
  std::vector<Tensors> results;
  size_t first = 0;
  for (const Tensors* request : requests) {
    const auto rows = static_cast<size_t>(count_rows(*request));
    Tensors& own = results.emplace_back();
    for (const Tensor& output : outputs) {
      const size_t row = all_rows == 0 ? 0 : output.elements.size() / all_rows;
      const auto begin = output.elements.begin() + static_cast<std::ptrdiff_t>(first * row);
      own.push_back({output.sizes, {begin, begin + static_cast<std::ptrdiff_t>(rows * row)}});
      own.back().sizes.front() = static_cast<int64_t>(rows);
    }
    first += rows;
  }
  return results;
}

// Asked with no memory for the outputs first, the program says how large they are.
Tensors Model::run_once(const Tensors& inputs) const {
  Tensors given = inputs, outputs(outputs_.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i].sizes.resize(static_cast<size_t>(outputs_[i]->rank));
  const std::vector<tenon_tensor> from = tensors_of(given, inputs_);
  const tenon_run_options options{
      .struct_size = sizeof options, .threads = threads_, .seed = 0, .stream = nullptr};
  std::vector<tenon_tensor> to = tensors_of(outputs, outputs_);
  tenon_run(program_.get(), from.data(), from.size(), to.data(), to.size(), &options);
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i].elements.resize(count_elements(outputs[i].sizes) * datatype_of(*outputs_[i]).bytes);
  to = tensors_of(outputs, outputs_);
  if (tenon_run(program_.get(), from.data(), from.size(), to.data(), to.size(), &options) != TENON_OK)
    throw HttpError(400, tenon_error_message());
  return outputs;
}
