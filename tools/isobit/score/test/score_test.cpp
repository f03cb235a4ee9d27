// `isobit score` as a program: its bytes against the library called in memory, on a head split over shards.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <isobit/linear_logp.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <sstream>

#include "arrays.h"
#include "checkpoint/checkpoint.h"
#include "score/test/files.h"

namespace isobit::cli::score {
namespace {

constexpr int64_t kRows = 37, kWidth = 48, kVocab = 1000, kTop = 5;

std::vector<uint16_t> random_bf16(uint64_t seed, int64_t count, float scale) {
  std::vector<uint16_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(bf16_from_float(random_value(seed, i, scale)));
  return values;
}

isobit_tensor view(void* data, isobit_dtype dtype, int64_t rows, int64_t columns) {
  isobit_tensor t{};
  t.data = data;
  t.dtype = dtype;
  t.device_type = ISOBIT_CPU;
  t.rank = columns > 0 ? 2 : 1;
  t.shape[0] = rows;
  t.shape[1] = columns;
  t.stride[0] = columns > 0 ? columns : 1;
  t.stride[1] = columns > 0 ? 1 : 0;
  return t;
}

// A model of 37 rows with a head over a sharded folder, and what the library says of it.
class Score : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int64_t n = 0; n < kRows; ++n) targets_.push_back(n == 3 ? -100 : n * 131 % kVocab);
    write("hidden.safetensors", {tensor("hidden_states", Dtype::kBF16, {kRows, kWidth}, hidden_)});
    write("ids.safetensors", {tensor("targets", Dtype::kI64, {kRows}, targets_)});
    write("head/model-00001-of-00002.safetensors",
          {tensor("model.embed_tokens.weight", Dtype::kBF16, {4, kWidth}, other_),
           tensor("model.norm.weight", Dtype::kBF16, {kWidth}, norm_)});
    write("head/model-00002-of-00002.safetensors", {tensor("lm_head.weight", Dtype::kBF16, {kVocab, kWidth}, head_)});
    folder_.write("head/model.safetensors.index.json",
                  R"({"metadata": {"total_size": 96480}, "weight_map": {)"
                  R"("model.embed_tokens.weight": "model-00001-of-00002.safetensors",)"
                  R"("model.norm.weight": "model-00001-of-00002.safetensors",)"
                  R"("lm_head.weight": "model-00002-of-00002.safetensors"}})");
  }

  void write(const std::string& name, const std::vector<OutputTensor>& tensors) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    ASSERT_EQ(checkpoint::write_safetensors(folder_ / name, tensors).message, "");
  }

  std::string files() const {
    return "--hidden " + (folder_ / "hidden.safetensors") + " --head " + (folder_ / "head") + " --targets " +
           (folder_ / "ids.safetensors") + " ";
  }

  void call_library(float temperature, float softcap) {
    isobit_linear_logp_args args = ISOBIT_LINEAR_LOGP_ARGS_INIT;
    args.hidden = view(hidden_.data(), ISOBIT_BF16, kRows, kWidth);
    args.weight = view(head_.data(), ISOBIT_BF16, kVocab, kWidth);
    args.target = view(targets_.data(), ISOBIT_INT64, kRows, 0);
    args.temperature_value = temperature;
    args.softcap = softcap;
    args.logp = view(logp_.data(), ISOBIT_FP32, kRows, 0);
    args.lse = view(lse_.data(), ISOBIT_FP32, kRows, 0);
    args.entropy = view(entropy_.data(), ISOBIT_FP32, kRows, 0);
    args.rank = view(rank_.data(), ISOBIT_INT32, kRows, 0);
    args.top_id = view(top_id_.data(), ISOBIT_INT32, kRows, kTop);
    args.top_logp = view(top_logp_.data(), ISOBIT_FP32, kRows, kTop);
    size_t least = 0, most = 0;
    ASSERT_EQ(isobit_linear_logp_workspace(&args, &least, &most), ISOBIT_OK) << isobit_last_error();
    const Buffer workspace(Place{}, most);
    args.workspace = workspace.data();
    args.workspace_bytes = most;
    ASSERT_EQ(isobit_linear_logp(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  }

  template <class T>
  void expect_bytes(checkpoint::Checkpoint& file, const std::string& name, const std::vector<T>& expected) {
    const auto found = file.find(name);
    ASSERT_TRUE(found.ok()) << found.status().message;
    ASSERT_EQ(found->bytes.size(), expected.size() * sizeof(T));
    EXPECT_EQ(std::memcmp(found->bytes.data(), expected.data(), found->bytes.size()), 0) << name;
  }

  TemporaryFolder folder_;
  std::vector<uint16_t> hidden_ = random_bf16(1, kRows* kWidth, 1);
  std::vector<uint16_t> head_ = random_bf16(2, kVocab* kWidth, 0.5f);
  std::vector<uint16_t> other_ = random_bf16(3, 4 * kWidth, 1);
  std::vector<uint16_t> norm_ = random_bf16(4, kWidth, 1);
  std::vector<int64_t> targets_;
  std::vector<float> logp_ = std::vector<float>(kRows, -7), lse_ = logp_, entropy_ = logp_;
  std::vector<int32_t> rank_ = std::vector<int32_t>(kRows, -7);
  std::vector<int32_t> top_id_ = std::vector<int32_t>(kRows * kTop, -7);
  std::vector<float> top_logp_ = std::vector<float>(kRows * kTop, -7);
};

TEST_F(Score, WritesTheBytesOfTheLibraryWhateverTheChunks) {
  call_library(0.7f, 30.0f);
  for (const std::string chunk : {"", "--chunk-rows 1", "--chunk-rows 7 --threads 1", "--chunk-rows 64"}) {
    const Outcome run = run_score(folder_, files() + chunk + " --lse --entropy --rank --top-k 5 --temperature 0.7 " +
                                               "--softcap 30 --output " + (folder_ / "out.safetensors"));
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.out + run.err, "");
    auto file = checkpoint::Checkpoint::open(folder_ / "out.safetensors");
    ASSERT_TRUE(file.ok());
    expect_bytes(*file, "logp", logp_);
    expect_bytes(*file, "lse", lse_);
    expect_bytes(*file, "entropy", entropy_);
    expect_bytes(*file, "rank", rank_);
    expect_bytes(*file, "top_id", top_id_);
    expect_bytes(*file, "top_logp", top_logp_);
  }
}

TEST_F(Score, CsvAndJsonReadBackToTheSameBits) {
  call_library(1, 0);
  const Outcome csv = run_score(folder_, files() + "--entropy --top-k 5");
  ASSERT_EQ(csv.code, 0) << csv.err;
  std::istringstream lines(csv.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line,
            "row,target,logp,entropy,top_id_0,top_id_1,top_id_2,top_id_3,top_id_4,"
            "top_logp_0,top_logp_1,top_logp_2,top_logp_3,top_logp_4");
  for (int64_t n = 0; n < kRows; ++n) {
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream cells(line);
    std::vector<std::string> cell;
    for (std::string word; std::getline(cells, word, ',');) cell.push_back(word);
    ASSERT_EQ(cell.size(), 14u);
    EXPECT_EQ(std::stoll(cell[0]), n);
    EXPECT_EQ(std::stoll(cell[1]), targets_[n]);
    EXPECT_EQ(std::bit_cast<uint32_t>(std::strtof(cell[2].c_str(), nullptr)), std::bit_cast<uint32_t>(logp_[n]));
    EXPECT_EQ(std::bit_cast<uint32_t>(std::strtof(cell[3].c_str(), nullptr)), std::bit_cast<uint32_t>(entropy_[n]));
    EXPECT_EQ(std::stoi(cell[4]), top_id_[n * kTop]);
  }
  EXPECT_FALSE(std::getline(lines, line));

  const Outcome json = run_score(folder_, files() + "--rank --top-k 1 --format jsonl");
  ASSERT_EQ(json.code, 0) << json.err;
  std::istringstream objects(json.out);
  ASSERT_TRUE(std::getline(objects, line));
  EXPECT_EQ(line, fmt::format("{{\"row\":0,\"target\":0,\"logp\":{},\"rank\":{},\"top_id\":[{}],\"top_logp\":[{}]}}",
                              logp_[0], rank_[0], top_id_[0], top_logp_[0]));
  EXPECT_EQ(std::count(json.out.begin(), json.out.end(), '\n'), kRows);
}

TEST_F(Score, SeveralTargetsARowAndBatchesKeepTheirShape) {
  std::vector<int32_t> three(kRows * 3);
  std::iota(three.begin(), three.end(), 0);
  write("ids.safetensors", {tensor("input_ids", Dtype::kI32, {1, kRows, 3}, three)});
  write("hidden.safetensors", {tensor("x", Dtype::kBF16, {1, kRows, kWidth}, hidden_)});
  const Outcome run = run_score(folder_, files() + "--lse --output " + (folder_ / "out.safetensors"));
  ASSERT_EQ(run.code, 0) << run.err;
  auto file = checkpoint::Checkpoint::open(folder_ / "out.safetensors");
  EXPECT_EQ(file->find("logp")->shape, (std::vector<uint64_t>{1, kRows, 3}));
  EXPECT_EQ(file->find("lse")->shape, (std::vector<uint64_t>{1, kRows}));
  const Outcome csv = run_score(folder_, files());
  EXPECT_EQ(csv.out.substr(0, csv.out.find('\n')), "row,target_0,target_1,target_2,logp_0,logp_1,logp_2");
}

TEST_F(Score, TiedEmbeddingsAndNamedTensorsGiveTheSameBytes) {
  const Outcome expected = run_score(folder_, files());
  write("tied/model.safetensors", {tensor("model.embed_tokens.weight", Dtype::kBF16, {kVocab, kWidth}, head_)});
  folder_.write("tied/config.json", R"({"tie_word_embeddings": true})");
  const std::string others =
      "--hidden " + (folder_ / "hidden.safetensors") + " --targets " + (folder_ / "ids.safetensors");
  EXPECT_EQ(run_score(folder_, others + " --head " + (folder_ / "tied")).out, expected.out);
  EXPECT_EQ(run_score(folder_, others + " --head-tensor model.embed_tokens.weight --head " +
                                   (folder_ / "tied/model.safetensors"))
                .out,
            expected.out);
  EXPECT_EQ(run_score(folder_, others + " --head " + (folder_ / "tied/model.safetensors")).code, 2);
}

TEST_F(Score, OtherTypesAreRefusedByNameOrConvertedOnRequest) {
  std::vector<float> wide;
  for (const uint16_t value : head_) wide.push_back(bf16_to_float(value) * (1 + 0x1p-12f));  // rounds back
  std::vector<uint16_t> half;
  for (const uint16_t value : hidden_) half.push_back(fp16_from_float(bf16_to_float(value)));
  const Outcome expected = run_score(folder_, files());
  write("head/model-00002-of-00002.safetensors", {tensor("lm_head.weight", Dtype::kF32, {kVocab, kWidth}, wide)});
  const Outcome refused = run_score(folder_, files());
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(refused.err,
            "isobit: score: " + (folder_ / "head/model-00002-of-00002.safetensors") +
                ": tensor \"lm_head.weight\": dtype: expected BF16 (--convert-to-bf16 rounds to it), got F32\n");
  EXPECT_EQ(run_score(folder_, files() + "--convert-to-bf16").out, expected.out);
  write("hidden.safetensors", {tensor("hidden", Dtype::kF16, {kRows, kWidth}, half)});
  EXPECT_EQ(run_score(folder_, files()).code, 2);
  EXPECT_EQ(run_score(folder_, files() + "--convert-to-bf16").code, 0);
}

TEST_F(Score, ATensorAtAnOddAddressGivesTheSameBytes) {
  const Outcome expected = run_score(folder_, files());
  std::string header = R"({"hidden":{"dtype":"BF16","shape":[37,48],"data_offsets":[0,3552]}})";
  if (header.size() % 2 == 0) header += ' ';
  const std::string data(reinterpret_cast<const char*>(hidden_.data()), hidden_.size() * 2);
  folder_.write("hidden.safetensors", checkpoint::safetensors_file(header, data));
  EXPECT_EQ(run_score(folder_, files()).out, expected.out);
}

TEST_F(Score, BadInputGivesOneLineAndCodeTwo) {
  const auto line = [&](const std::string& arguments) {
    const Outcome run = run_score(folder_, arguments + " --output " + (folder_ / "none.csv"));
    EXPECT_EQ(run.code, 2) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "none.csv"));
    return run.err;
  };
  EXPECT_NE(line(files() + "--temperature 0").find("temperature_value"), std::string::npos);
  EXPECT_NE(line(files() + "--kernel none").find("none"), std::string::npos);
  EXPECT_NE(line(files() + "--vocab-size 1001").find("--vocab-size"), std::string::npos);
  EXPECT_NE(
      line(files() + "--vocab-size 100").find("token id: expected 0 to 99 or --ignore-index -100, got 131 in row 1"),
      std::string::npos);
  EXPECT_NE(line(files() + "--hidden-tensor y").find("tensor name: expected \"y\", got \"hidden_states\""),
            std::string::npos);
  write("hidden.safetensors",
        {tensor("hidden_states", Dtype::kBF16, {kRows, kWidth / 2}, std::vector<uint16_t>(kRows * kWidth / 2))});
  EXPECT_NE(line(files()).find("columns: expected 24 as in"), std::string::npos);
  write("hidden.safetensors",
        {tensor("hidden_states", Dtype::kBF16, {kRows - 1, kWidth}, std::vector<uint16_t>((kRows - 1) * kWidth))});
  EXPECT_NE(line(files()).find("shape: expected [36] (the rows of hidden), or that and K targets a row, got [37]"),
            std::string::npos);
  folder_.write("hidden.safetensors", "x");
  EXPECT_NE(line(files()).find("file size: expected at least 8 bytes"), std::string::npos);
  EXPECT_EQ(run_score(folder_, files() + "--format safetensors").code, 2);
  EXPECT_EQ(run_score(folder_, "--no-such-option").code, 2);
}

TEST_F(Score, NoRowsGiveAnEmptyTable) {
  write("hidden.safetensors", {tensor("h", Dtype::kBF16, {0, kWidth}, std::vector<uint16_t>{})});
  write("ids.safetensors", {tensor("t", Dtype::kI64, {0}, std::vector<int64_t>{})});
  const Outcome run = run_score(folder_, files());
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "row,target,logp\n");
}

// The head is mapped: 600 MB of it pass where the process may allocate far less.
TEST_F(Score, AHeadLargerThanTheAllowedMemory) {
  constexpr uint64_t kBigVocab = 6'000'000;
  std::string header = fmt::format(R"({{"lm_head.weight":{{"dtype":"BF16","shape":[{},{}],"data_offsets":[0,{}]}}}})",
                                   kBigVocab, kWidth, kBigVocab * kWidth * 2);
  header.resize((header.size() + 7) / 8 * 8, ' ');  // as every writer does; at an odd address the head would be copied
  const std::string path = folder_.write("big.safetensors", checkpoint::safetensors_file(header));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + kBigVocab * kWidth * 2);  // a sparse file
  const std::string arguments = "--hidden " + (folder_ / "hidden.safetensors") + " --targets " +
                                (folder_ / "ids.safetensors") + " --threads 1 --head " + path;
  const Outcome run = run_score(folder_, arguments, "ulimit -d " ISOBIT_MEMORY_LIMIT " && ");
  ASSERT_EQ(run.code, 0) << run.err;
  // Every logit is 0, so every log-probability is -log of the number of ids.
  EXPECT_TRUE(run.out.starts_with("row,target,logp\n0,0,-15.60727\n")) << run.out;
}

}  // namespace
}  // namespace isobit::cli::score
