// A cursor over tokens with the error messages the parser needs.
#pragma once
#include <string>
#include <vector>

#include "ptx/syntax/diagnostics.h"
#include "ptx/syntax/lexer.h"

namespace isobit::ptx {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(position_ + ahead, tokens_.size() - 1)]; }
  Token next() {
    const Token token = peek();
    if (token.kind != TokenKind::kEnd) ++position_;
    return token;
  }
  bool at_end() const { return peek().kind == TokenKind::kEnd; }
  bool is(std::string_view punctuation, size_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::kPunctuation && peek(ahead).text == punctuation;
  }
  bool is_modifier(std::string_view text) const { return peek().kind == TokenKind::kModifier && peek().text == text; }
  bool accept(std::string_view punctuation) {
    if (!is(punctuation)) return false;
    ++position_;
    return true;
  }
  bool accept_modifier(std::string_view text) {
    if (!is_modifier(text)) return false;
    ++position_;
    return true;
  }
  void expect(std::string_view punctuation) {
    if (!accept(punctuation)) {
      fail("expected '" + std::string(punctuation) + "', got '" + std::string(peek().text) + "'");
    }
  }
  Token expect(TokenKind kind, const char* what) {
    if (peek().kind != kind) fail(std::string("expected ") + what + ", got '" + std::string(peek().text) + "'");
    return next();
  }
  void skip_line() {
    for (const int line = peek().line; !at_end() && peek().line == line;) ++position_;
  }
  void skip_braces() {  // at '{': to after the matching '}'
    int depth = 0;
    do {
      if (is("{")) ++depth;
      if (is("}")) --depth;
      if (at_end()) fail("'{' is not closed");
      ++position_;
    } while (depth > 0);
  }
  uint64_t integer();  // optional sign and an integer literal

  [[noreturn]] void fail(const std::string& message) const { throw ParseFailure{{peek().line, message}}; }

 private:
  std::vector<Token> tokens_;
  size_t position_ = 0;
};

// The value of an integer literal in any base, or a ParseFailure at `line`.
uint64_t parse_integer(std::string_view text, int line);

}  // namespace isobit::ptx
