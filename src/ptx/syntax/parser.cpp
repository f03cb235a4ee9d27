// Module level of the parser: directives, variables, function headers.
#include <algorithm>
#include <bit>
#include <charconv>

#include "ptx/syntax/body_parser.h"
#include "ptx/syntax/syntax.h"
#include "ptx/syntax/token_stream.h"

namespace isobit::ptx {

uint64_t parse_integer(std::string_view text, int line) {
  std::string_view digits = text;
  if (!digits.empty() && digits.back() == 'U') digits.remove_suffix(1);
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const bool hexadecimal = digits[1] == 'x' || digits[1] == 'X', binary = digits[1] == 'b' || digits[1] == 'B';
    base = hexadecimal ? 16 : binary ? 2 : 8;
    digits.remove_prefix(hexadecimal || binary ? 2 : 1);
  }
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (code != std::errc{} || end != digits.data() + digits.size()) {
    throw ParseFailure{{line, "not an integer: '" + std::string(text) + "'"}};
  }
  return value;
}

uint64_t TokenStream::integer() {
  const bool negative = accept("-");
  const Token token = expect(TokenKind::kNumber, "an integer");
  const uint64_t value = parse_integer(token.text, token.line);
  return negative ? 0 - value : value;
}

namespace {

constexpr uint64_t kMaxAlignment = 65536;
constexpr uint32_t kMaxParameterBytes = 32764;  // what a kernel of CUDA 12.1 and newer takes
constexpr int kMaxBraces = 16;                  // one inside the other

void append_element(TokenStream& in, Type type, std::vector<uint8_t>& bytes) {
  const Token& token = in.peek();
  uint64_t value = 0;
  const bool literal = token.text.size() > 2 && token.text[0] == '0' &&
                       std::string_view("fFdD").find(token.text[1]) != std::string_view::npos;
  if (token.kind == TokenKind::kNumber && literal && is_float(type)) {
    value = parse_integer("0x" + std::string(token.text.substr(2)), token.line);
    in.next();
  } else {
    value = in.integer();
  }
  for (int i = 0; i < bytes_of(type); ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void append_initialiser(TokenStream& in, Type type, std::vector<uint8_t>& bytes, int braces = 0) {
  if (!in.accept("{")) return append_element(in, type, bytes);
  if (braces == kMaxBraces) in.fail("more than " + std::to_string(kMaxBraces) + " braces in an initialiser");
  while (!in.accept("}")) {
    append_initialiser(in, type, bytes, braces + 1);
    if (!in.accept(",") && !in.is("}")) in.fail("expected ',' or '}' in an initialiser");
  }
}

struct Linkage {
  bool external = false;
};

Linkage parse_linkage(TokenStream& in) {
  Linkage linkage;
  while (true) {
    if (in.accept_modifier("extern")) {
      linkage.external = true;
    } else if (!in.accept_modifier("visible") && !in.accept_modifier("weak") && !in.accept_modifier("common")) {
      return linkage;
    }
  }
}

void parse_launch_bounds(TokenStream& in, uint32_t (&out)[3]) {
  std::fill(out, out + 3, 1u);
  int i = 0;
  do {
    if (i == 3) in.fail("more than three dimensions");
    out[i++] = static_cast<uint32_t>(in.integer());
  } while (in.accept(","));
}

// Of an .align, or of a type in its place.
uint32_t checked_alignment(const TokenStream& in, uint64_t alignment) {
  if (alignment > 0 && alignment <= kMaxAlignment && std::has_single_bit(alignment)) {
    return static_cast<uint32_t>(alignment);
  }
  in.fail("expected an alignment that is a power of two up to " + std::to_string(kMaxAlignment));
}

void parse_parameters(TokenStream& in, FunctionSyntax& f) {
  if (!in.accept("(")) return;
  while (!in.accept(")")) {
    if (!in.accept_modifier("param")) in.fail("expected .param");
    uint64_t alignment = 0;
    if (in.accept_modifier("align")) alignment = checked_alignment(in, in.integer());
    const Token type_token = in.expect(TokenKind::kModifier, "a type");
    const auto type = parse_type(type_token.text);
    if (!type) in.fail("unknown type ." + std::string(type_token.text));
    while (in.peek().kind == TokenKind::kModifier) {  // .ptr .global .align N: hints about the pointee
      if (in.next().text == "align") in.integer();
    }
    Parameter p;
    p.name = in.expect(TokenKind::kWord, "a parameter name").text;
    p.bytes = static_cast<uint32_t>(bytes_of(*type));
    if (alignment == 0) alignment = checked_alignment(in, p.bytes);
    if (in.accept("[")) {
      p.bytes *= static_cast<uint32_t>(std::min<uint64_t>(in.integer(), kMaxParameterBytes + 1));
      in.expect("]");
    }
    p.offset = static_cast<uint32_t>((f.parameter_bytes + alignment - 1) / alignment * alignment);
    f.parameter_bytes = p.offset + p.bytes;
    if (f.parameter_bytes > kMaxParameterBytes) {
      in.fail("expected at most " + std::to_string(kMaxParameterBytes) + " bytes of parameters");
    }
    f.parameters.push_back(std::move(p));
    if (!in.accept(",") && !in.is(")")) in.fail("expected ',' or ')' after a parameter");
  }
}

FunctionSyntax parse_entry(TokenStream& in, std::string_view source) {
  FunctionSyntax f;
  f.line = in.peek().line;
  f.name = in.expect(TokenKind::kWord, "a kernel name").text;
  parse_parameters(in, f);
  while (!in.is("{")) {
    const Token d = in.expect(TokenKind::kModifier, "a performance directive or '{'");
    uint32_t ignored[3];
    if (d.text == "maxntid") {
      parse_launch_bounds(in, f.max_threads);
    } else if (d.text == "reqntid") {
      parse_launch_bounds(in, f.required_threads);
    } else if (d.text == "reqnctapercluster") {
      parse_launch_bounds(in, f.cluster);
    } else if (d.text == "minnctapersm" || d.text == "maxnreg" || d.text == "maxclusterrank") {
      parse_launch_bounds(in, ignored);
    } else if (d.text == "pragma") {
      in.next();
      in.accept(";");
    } else if (d.text != "explicitcluster" && d.text != "blocksareclusters") {
      throw ParseFailure{{d.line, "unknown directive ." + std::string(d.text)}};
    }
  }
  BodyParser(in, source, f).run();
  return f;
}

void parse_module_variable(TokenStream& in, const Linkage& linkage, ModuleSyntax& module) {
  const std::string_view space = in.next().text;
  Variable v = parse_variable(in, linkage.external);
  in.expect(";");
  (space == "global" ? module.global : space == "const" ? module.constant : module.shared).push_back(std::move(v));
}

}  // namespace

Variable parse_variable(TokenStream& in, bool external) {
  Variable v;
  v.external = external;
  uint64_t element = 0;
  std::optional<Type> type;
  while (in.peek().kind == TokenKind::kModifier) {
    const Token t = in.next();
    if (t.text == "align") {
      v.alignment = checked_alignment(in, in.integer());
      continue;
    }
    type = parse_type(t.text);
    if (!type) throw ParseFailure{{t.line, "unknown type ." + std::string(t.text)}};
    element = static_cast<uint64_t>(bytes_of(*type));
  }
  if (!type) in.fail("variable without a type");
  v.alignment = checked_alignment(in, std::max<uint64_t>(v.alignment, element));
  v.name = in.expect(TokenKind::kWord, "a variable name").text;
  v.bytes = element;
  while (in.accept("[")) {
    v.bytes *= in.is("]") ? 0 : in.integer();
    in.expect("]");
  }
  if (in.accept("=")) {
    append_initialiser(in, *type, v.initial);
    if (v.initial.size() > v.bytes) in.fail("initialiser is longer than " + v.name);
    v.initial.resize(v.bytes);
  }
  return v;
}

ModuleSyntax parse_syntax(std::string_view source) {
  TokenStream in(tokenize(source));
  ModuleSyntax module;
  while (!in.at_end()) {
    const Linkage linkage = parse_linkage(in);
    if (in.peek().kind != TokenKind::kModifier)
      in.fail("expected a directive, got '" + std::string(in.peek().text) + "'");
    const std::string_view directive = in.peek().text;
    if (directive == "version" || directive == "address_size" || directive == "file" || directive == "target") {
      if (directive == "target") module.target = in.peek(1).text;
      in.skip_line();
    } else if (directive == "global" || directive == "const" || directive == "shared") {
      parse_module_variable(in, linkage, module);
    } else if (directive == "entry") {
      in.next();
      module.functions.push_back(parse_entry(in, source));
    } else if (directive == "func") {  // a body is skipped; a call is refused where it stands
      while (!in.is(";") && !in.is("{") && !in.at_end()) in.next();
      if (in.is("{"))
        in.skip_braces();
      else
        in.next();
    } else if (directive == "section") {
      while (!in.is("{") && !in.at_end()) in.next();
      in.skip_braces();
    } else {
      in.fail("unknown directive ." + std::string(directive));
    }
  }
  return module;
}

}  // namespace isobit::ptx
