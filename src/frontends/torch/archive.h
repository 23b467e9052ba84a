// archive.h — the files of a torch.export archive: the program, and the weights and constants, which stay in
// the archive until they are needed.
#pragma once

#include <map>
#include <string>

#include "base/zip_file.h"
#include "frontends/torch/schema.h"
#include "tensor/literal.h"

namespace tenon::torch {

class Archive {
 public:
  explicit Archive(std::shared_ptr<const MappedFile> file);

  const Program& program() const { return program_; }
  // A weight (a parameter or buffer) or constant by its name. One that is stored, and lies in memory as its
  // sizes say, is a slice of the file.
  Literal weight(const std::string& name);
  Literal constant(const std::string& name);

 private:
  const ZipFile::Entry& entry(const std::string& path) const;
  std::string read_text(const std::string& path) const;
  Payloads read_payloads(const std::string& path) const;
  Literal payload(const std::string& folder, const Payload& payload);
  // The bytes of an entry that is deflated; those that several tensors share are unpacked once.
  const Tensor& unpacked(const ZipFile::Entry& entry);

  ZipFile zip_;
  std::string root_;   // the folder that everything is in
  std::string model_;  // the name of the model, of which an archive may hold several
  Program program_;
  Payloads weights_, constants_;
  std::map<std::string, Tensor> unpacked_;
  uint64_t unpacked_bytes_ = 0;
};

}  // namespace tenon::torch
