#include "frontends/onnx/write/custom_call.h"

#include <charconv>

#include "base/error.h"
#include "ir/parse.h"

namespace tenon::onnx {
namespace {

// "alpha: float = 0.5"
NamedAttribute parse_named(std::string_view text) {
  constexpr std::string_view colon = ": ", equals = " = ";
  const size_t kind_at = text.find(colon), value_at = text.find(equals);
  for (const AttributeKind kind : {AttributeKind::Float, AttributeKind::Int, AttributeKind::String,
                                   AttributeKind::Floats, AttributeKind::Ints, AttributeKind::Strings})
    if (kind_at < value_at && value_at != std::string_view::npos &&
        text.substr(kind_at, value_at - kind_at) == fmt::format("{}{}", colon, name(kind)))
      return {text.substr(0, kind_at), parse_attribute(text.substr(value_at + equals.size()), kind)};
  throw user_error("custom: an attribute is \"{}\", but must be NAME: KIND = VALUE", text);
}

// Puts what stands for something that is left out at the places where it is.
template <class Each>
void insert_omitted(std::vector<Each>& given, const Attribute::Ints& places) {
  for (const int64_t place : places) {
    if (place < 0 || place > std::ssize(given))
      throw user_error("custom: it leaves out what has place {}, but there are {} others", place,
                       given.size());
    given.insert(given.begin() + place, Each());
  }
}

std::string bytes_of(std::string_view hexadecimal) {
  std::string bytes;
  for (size_t at = 0; at < hexadecimal.size(); at += 2) {
    unsigned char byte = 0;
    const std::string_view digits = hexadecimal.substr(at, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (error != std::errc() || end != digits.data() + 2)
      throw user_error("custom: a message is to be hexadecimal, but has {}", digits);
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

}  // namespace

OnnxCall call_of_custom(const Node& custom) {
  OnnxCall call = {
      .name = custom.attr("op"),
      .inputs = {},
      .attributes = {},
      .foreign = ForeignOp{custom.attr("domain"), custom.attr("version"), custom.attr("newest")}};
  for (Value value : custom.ins("operands"))
    call.inputs.push_back({value});
  insert_omitted(call.inputs, custom.attr("omitted_inputs"));
  for (const std::string& text : custom.attr("attributes").as<Attribute::Strings>())
    call.attributes.push_back(parse_named(text));
  return call;
}

std::vector<std::string> messages_of(const Node& custom) {
  std::vector<std::string> messages;
  for (const std::string& hexadecimal : custom.attr("messages").as<Attribute::Strings>())
    messages.push_back(bytes_of(hexadecimal));
  return messages;
}

std::vector<std::string> with_omitted_outputs(const Node& custom, std::vector<std::string> outputs) {
  insert_omitted(outputs, custom.attr("omitted_outputs"));
  return outputs;
}

}  // namespace tenon::onnx
