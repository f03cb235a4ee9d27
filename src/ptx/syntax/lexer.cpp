#include "ptx/syntax/lexer.h"

#include <cctype>
#include <string>

#include "ptx/syntax/diagnostics.h"

namespace isobit::ptx {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    tokens.reserve(source_.size() / 4);
    while (skip_blank()) tokens.push_back(next());
    tokens.push_back({TokenKind::kEnd, {}, line_, source_.data() + source_.size()});
    return tokens;
  }

 private:
  char peek(size_t ahead = 0) const { return position_ + ahead < source_.size() ? source_[position_ + ahead] : '\0'; }

  bool skip_blank() {
    while (position_ < source_.size()) {
      if (peek() == '\n') {
        ++line_;
        ++position_;
      } else if (std::isspace(static_cast<unsigned char>(peek()))) {
        ++position_;
      } else if (peek() == '/' && peek(1) == '/') {
        while (position_ < source_.size() && peek() != '\n') ++position_;
      } else if (peek() == '/' && peek(1) == '*') {
        skip_block_comment();
      } else {
        return true;
      }
    }
    return false;
  }

  void skip_block_comment() {
    const int start = line_;
    for (position_ += 2; !(peek() == '*' && peek(1) == '/'); ++position_) {
      if (position_ >= source_.size()) throw ParseFailure{{start, "comment is not closed"}};
      if (peek() == '\n') ++line_;
    }
    position_ += 2;
  }

  Token next() {
    const size_t start = position_;
    const char c = peek();
    if (c == '.' && (is_word(peek(1)))) return modifier();
    if (c == '"') return string();
    if (is_word(c)) {
      while (is_word(peek())) ++position_;
      const bool number = std::isdigit(static_cast<unsigned char>(c));
      return make(number ? TokenKind::kNumber : TokenKind::kWord, start, start);
    }
    constexpr std::string_view kPunctuation = "()[]{}<>,;:|@!=+-";
    if (kPunctuation.find(c) == std::string_view::npos) {
      throw ParseFailure{{line_, std::string("unexpected character '") + c + "'"}};
    }
    ++position_;
    return make(TokenKind::kPunctuation, start, start);
  }

  Token modifier() {
    const size_t start = position_++;
    const size_t text = position_;
    while (is_word(peek()) || (peek() == ':' && peek(1) == ':' && is_word(peek(2)))) {
      position_ += peek() == ':' ? 2 : 1;
    }
    return make(TokenKind::kModifier, start, text);
  }

  Token string() {
    const size_t start = position_++;
    while (peek() != '"') {
      if (position_ >= source_.size() || peek() == '\n') throw ParseFailure{{line_, "string is not closed"}};
      ++position_;
    }
    ++position_;
    return make(TokenKind::kString, start, start);
  }

  Token make(TokenKind kind, size_t begin, size_t text) const {
    return {kind, source_.substr(text, position_ - text), line_, source_.data() + begin};
  }

  std::string_view source_;
  size_t position_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace isobit::ptx
