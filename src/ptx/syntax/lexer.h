// Splits PTX text into tokens. A modifier such as `.shared::cluster` is one token, and so is `%tid`; `.x` follows it as
// a modifier.
#pragma once
#include <string_view>
#include <vector>

namespace isobit::ptx {

enum class TokenKind : unsigned char { kWord, kModifier, kNumber, kString, kPunctuation, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // a modifier's text excludes its leading dot
  int line = 0;
  const char* begin = nullptr;  // where the token starts in the source, dot included
};

// The views point into `source`, which must outlive them. Throws ParseFailure.
std::vector<Token> tokenize(std::string_view source);

}  // namespace isobit::ptx
