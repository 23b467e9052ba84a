#include "loops/isl.h"

#include <isl/options.h>

namespace tenon::loops {
namespace {

constexpr unsigned long kMostOperations = 2'000'000;  // a few seconds

}  // namespace

Context make_context() {
  Context context(isl_ctx_alloc());
  isl_options_set_on_error(context.get(), ISL_ON_ERROR_CONTINUE);
  isl_ctx_set_max_operations(context.get(), kMostOperations);
  return context;
}

void check_done(isl_ctx* context, bool done) {
  if (done)
    return;
  CHECK(isl_ctx_last_error(context) == isl_error_quota, "the integer set library failed: {}",
        isl_ctx_last_error_msg(context));
  throw Undecided{"it would take too long"};
}

}  // namespace tenon::loops
