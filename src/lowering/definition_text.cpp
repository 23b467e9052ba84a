#include "lowering/definition_text.h"

#include <charconv>

#include "base/error.h"

namespace tenon::lowering {

using loops::Assign;
using loops::Buffer;
using loops::Definition;
using loops::Kernel;
using loops::Place;
using loops::Scalar;

namespace {

std::vector<Place> places_of(const Definition& definition) {
  std::vector<Place> places;
  for (const Buffer& result : definition.results)
    places.push_back({result.name, definition.at});
  return places;
}

// A kernel of the buffers that a definition loads, with this body.
Kernel around(const Definition& definition, const BufferTable& buffers) {
  Kernel kernel{.name = "definition", .inputs = {}, .outputs = {}, .combines = {}, .body = {}};
  std::set<std::string> names;
  for (const std::vector<Scalar>* scalars : {&definition.values, &definition.initial})
    for (const Scalar& scalar : *scalars)
      loops::for_each_load(scalar, [&](const Scalar& load) { names.insert(load.name()); });
  for (const std::string& name : names)
    kernel.inputs.push_back(buffers.at(name));
  kernel.outputs = definition.results;
  return kernel;
}

}  // namespace

std::string print_body(const Definition& definition, const BufferTable& buffers) {
  Kernel kernel = around(definition, buffers);
  if (definition.own_combine)
    kernel.combines.push_back(*definition.own_combine);
  if (!definition.initial.empty())
    kernel.body.emplace_back(
        Assign{.places = places_of(definition), .combine = "", .values = definition.initial});
  kernel.body.emplace_back(
      Assign{.places = places_of(definition), .combine = definition.combine, .values = definition.values});
  const std::string text = loops::print(kernel);
  std::string body;
  const size_t end = text.rfind('}');
  for (size_t begin = text.find('\n') + 1; begin < end; begin = text.find('\n', begin) + 1)
    body += text.substr(begin + 2, text.find('\n', begin) - begin - 1);
  return body;
}

Definition parse_body(std::string_view text, const std::vector<Buffer>& results, const BufferTable& buffers) {
  Kernel frame{.name = "definition", .inputs = {}, .outputs = results, .combines = {}, .body = {}};
  for (const KernelBuffer& buffer : buffers)
    if (!buffer.host_type && text.find(buffer.name() + "[") != std::string_view::npos &&
        std::ranges::find(results, buffer.name(), &Buffer::name) == results.end())
      frame.inputs.push_back(buffer.elements);
  std::string whole = loops::print(frame);
  whole.insert(whole.rfind('}'), std::string(text) + "\n");
  const Kernel kernel = loops::parse_kernel(whole);
  const auto* last = kernel.body.empty() ? nullptr : std::get_if<Assign>(&kernel.body.back());
  const auto* first = kernel.body.size() == 2 ? std::get_if<Assign>(&kernel.body.front()) : nullptr;
  if (last == nullptr || (kernel.body.size() > 1 && first == nullptr) || kernel.body.size() > 2 ||
      kernel.combines.size() > 1)
    throw user_error(
        "a definition is an assignment, or two: the initial value, then what is combined with it");
  Definition definition{.results = results,
                        .axes = {},
                        .reduced = {},
                        .at = last->places.front().at,
                        .combine = last->combine,
                        .own_combine = std::nullopt,
                        .initial = {},
                        .values = last->values};
  if (first != nullptr)
    definition.initial = first->values;
  if (!kernel.combines.empty())
    definition.own_combine = kernel.combines.front();
  for (const Assign* each : {first, last})
    if (each != nullptr && each->places != places_of(definition))
      throw user_error("a definition assigns to its results, all at the same place");
  return definition;
}

std::string print_number(const Scalar& number) {
  const Buffer place{.name = "x", .dtype = number.dtype()};
  const Kernel kernel{.name = "number",
                      .inputs = {},
                      .outputs = {place},
                      .combines = {},
                      .body = {Assign{.places = {{"x", {}}}, .combine = "", .values = {number}}}};
  const std::string text = loops::print(kernel.body.front(), kernel);
  return fmt::format("{}({})", number.dtype(), text.substr(text.find("= ") + 2));
}

Scalar parse_number(std::string_view text) {
  const std::string dtype(text.substr(0, text.find('(')));
  const Kernel kernel =
      loops::parse_kernel(fmt::format("kernel number() -> (x: {}[]) {{ x[] = {} }}", dtype, text));
  return std::get<Assign>(kernel.body.front()).values.front();
}

namespace {

// The fields of a contraction by name; `visit` gets each.
template <class Part, class F>
void for_each_field(Part& part, F&& visit) {
  visit("winograd_tile", part.choice.winograd_tile);
  visit("tile_rows", part.choice.tile_rows);
  visit("filter_parts", part.choice.filter_parts);
  visit("mr", part.choice.mr);
  visit("nr", part.choice.nr);
  visit("pack_a", part.choice.pack_a);
  visit("bf16x3", part.choice.bf16x3);
}

}  // namespace

std::string print_contraction(const ContractionPart& part) {
  std::string text = fmt::format("key {:#x}", part.key);
  for_each_field(part, [&](std::string_view name, const auto& field) {
    if (field)
      text += fmt::format(", {} {}", name, static_cast<int64_t>(*field));
  });
  return text;
}

std::optional<ContractionPart> parse_contraction(std::string_view text) {
  ContractionPart part{};
  bool is_whole = false;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(", "));
    text.remove_prefix(std::min(entry.size() + 2, text.size()));
    const std::string_view name = entry.substr(0, entry.find(' ')),
                           digits = entry.substr(std::min(name.size() + 1, entry.size()));
    const auto read = [&](std::string_view from, auto& to, int base) {
      const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), to, base);
      return error == std::errc() && end == from.data() + from.size();
    };
    bool is_known = false;
    if (name == "key" && digits.starts_with("0x"))
      is_known = is_whole = read(digits.substr(2), part.key, 16);
    for_each_field(part, [&]<class Field>(std::string_view field_name, Field& field) {
      if (field_name != name)
        return;
      if (int64_t number = 0; read(digits, number, 10)) {
        field = static_cast<typename Field::value_type>(number);
        is_known = true;
      }
    });
    if (!is_known)
      return std::nullopt;
  }
  return is_whole ? std::optional(part) : std::nullopt;
}

}  // namespace tenon::lowering
