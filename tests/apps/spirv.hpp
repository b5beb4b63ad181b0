// An assembler for small SPIR-V modules, and the kernels of the test programs.
//
// The numbers of instructions, types and modes are those of the SPIR-V specification, section 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace spirv {

using Words = std::vector<uint32_t>;

// A module that is being written, for one of the kernels below: its parameters are pointers to 32-bit numbers in the
// memory of the device, and 32-bit numbers.
class Module {
public:
  // Ids that every module has.
  enum : uint32_t { none, nothing, number, index, pointer, vector, vectors, items, one, first_free };

  Module() {
    declare(19, {nothing});            // OpTypeVoid
    declare(21, {number, 32, 0});      // OpTypeInt
    declare(21, {index, 64, 0});
    declare(32, {pointer, 5, number}); // OpTypePointer, CrossWorkgroup
    declare(23, {vector, index, 3});   // OpTypeVector
    declare(32, {vectors, 1, vector}); // OpTypePointer, Input
    declare(43, {number, one, 1});     // OpConstant
    declare(59, {vectors, items, 1});  // OpVariable, Input
    put(annotations, 71, {items, 11, 28}); // OpDecorate, BuiltIn, GlobalInvocationId
    put(annotations, 71, with_text({items, 41}, "__spirv_BuiltInGlobalInvocationId", {1})); // Linkage, Import
  }

  // A new id.
  uint32_t id() { return next++; }
  // An instruction of the kernel without a result, and with one.
  void does(uint32_t code, const Words &operands) { put(body, code, operands); }
  uint32_t gives(uint32_t code, uint32_t type, const Words &operands) {
    Words all{type, id()};
    all.insert(all.end(), operands.begin(), operands.end());
    does(code, all);
    return all[1];
  }

  // Begins a kernel, and returns its parameters and then the number of the work item.
  Words begin(const std::string &name, const Words &types) {
    const uint32_t kind = id(), kernel = id();
    Words signature{kind, nothing};
    signature.insert(signature.end(), types.begin(), types.end());
    declare(33, signature);                                    // OpTypeFunction
    put(entries, 15, with_text({6, kernel}, name, {items}));   // OpEntryPoint, Kernel
    does(54, {nothing, kernel, 0, kind});                      // OpFunction
    Words given;
    for (uint32_t type : types) given.push_back(gives(55, type, {})); // OpFunctionParameter
    does(248, {id()});                                         // OpLabel
    const uint32_t all = gives(61, vector, {items, 2, 32});    // OpLoad
    given.push_back(gives(81, index, {all, 0}));               // OpCompositeExtract
    return given;
  }
  void end() {
    does(253, {}); // OpReturn
    does(56, {});  // OpFunctionEnd
  }
  uint32_t place(uint32_t array, uint32_t item) { return gives(70, pointer, {array, item}); } // OpInBoundsPtrAccessChain
  uint32_t load(uint32_t from) { return gives(61, number, {from, 2, 4}); }
  void store(uint32_t to, uint32_t value) { does(62, {to, value, 2, 4}); }

  std::vector<std::byte> finish() const {
    Words words{0x07230203, 0x00010000, 0, next, 0};
    for (uint32_t capability : {4, 5, 6, 11}) put(words, 17, {capability}); // Addresses, Linkage, Kernel, Int64
    put(words, 14, {2, 2});                                                 // OpMemoryModel, Physical64, OpenCL
    for (const Words *section : {&entries, &annotations, &declarations, &body})
      words.insert(words.end(), section->begin(), section->end());
    std::vector<std::byte> bytes(words.size() * sizeof(uint32_t));
    std::memcpy(bytes.data(), words.data(), bytes.size());
    return bytes;
  }

private:
  uint32_t next = first_free;
  Words entries, annotations, declarations, body;

  static void put(Words &to, uint32_t code, const Words &operands) {
    to.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | code);
    to.insert(to.end(), operands.begin(), operands.end());
  }
  void declare(uint32_t code, const Words &operands) { put(declarations, code, operands); }

  static Words with_text(Words before, const std::string &text, const Words &after) {
    Words words(text.size() / sizeof(uint32_t) + 1);
    std::memcpy(words.data(), text.data(), text.size());
    before.insert(before.end(), words.begin(), words.end());
    before.insert(before.end(), after.begin(), after.end());
    return before;
  }
};

// The kernel `scale(to, from, factor)`: to[i] = from[i] * factor + 1.
inline std::vector<std::byte> scale() {
  Module module;
  const Words given = module.begin("scale", {Module::pointer, Module::pointer, Module::number});
  const uint32_t value = module.load(module.place(given[1], given[3]));
  const uint32_t product = module.gives(132, Module::number, {value, given[2]}); // OpIMul
  module.store(module.place(given[0], given[3]), module.gives(128, Module::number, {product, Module::one})); // OpIAdd
  module.end();
  return module.finish();
}

// The kernel `empty()`, which does nothing.
inline std::vector<std::byte> empty() {
  Module module;
  module.begin("empty", {});
  module.end();
  return module.finish();
}

} // namespace spirv
