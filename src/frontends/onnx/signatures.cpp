#include "frontends/onnx/signatures.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"
#include "frontends/onnx/importer.h"

namespace tenon::onnx {
namespace {

constexpr size_t kAny = std::numeric_limits<size_t>::max();

// What an op takes from opset `since` of its domain on.
struct Signature {
  std::string_view op_type;
  int64_t since;
  size_t most_inputs;
  std::string_view attributes;  // with a space between them
  std::string_view domain = "";
};

// As the schemas of ONNX 1.23 say; of ops that were taken back (Affine, Crop, ImageScaler,
// ParametricSoftplus, ScaledTanh, GroupNormalization of opset 18), as they said before. A row for each opset
// that changed something, in order. com.microsoft and SimplifiedLayerNormalization are ONNX Runtime's own, as
// its schemas say.
constexpr Signature kSignatures[] = {
    {"Abs", 1, 1, "consumed_inputs"},
    {"Abs", 6, 1, ""},
    {"Acos", 7, 1, ""},
    {"Acosh", 9, 1, ""},
    {"Add", 1, 2, "axis broadcast consumed_inputs"},
    {"Add", 6, 2, "axis broadcast"},
    {"Add", 7, 2, ""},
    {"Affine", 1, 1, "alpha beta"},
    {"AffineGrid", 20, 2, "align_corners"},
    {"And", 1, 2, "axis broadcast"},
    {"And", 7, 2, ""},
    {"ArgMax", 1, 1, "axis keepdims"},
    {"ArgMax", 12, 1, "axis keepdims select_last_index"},
    {"ArgMin", 1, 1, "axis keepdims"},
    {"ArgMin", 12, 1, "axis keepdims select_last_index"},
    {"Asin", 7, 1, ""},
    {"Asinh", 9, 1, ""},
    {"Atan", 7, 1, ""},
    {"Atanh", 9, 1, ""},
    {"Attention", 23, 6,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision"},
    {"Attention", 24, 7,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision"},
    {"Attention", 25, 7,
     "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size scale "
     "softcap softmax_precision"},
    {"AveragePool", 1, 1, "auto_pad kernel_shape pads strides"},
    {"AveragePool", 7, 1, "auto_pad count_include_pad kernel_shape pads strides"},
    {"AveragePool", 10, 1, "auto_pad ceil_mode count_include_pad kernel_shape pads strides"},
    {"AveragePool", 19, 1, "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"},
    {"BatchNormalization", 1, 5, "consumed_inputs epsilon is_test momentum spatial"},
    {"BatchNormalization", 6, 5, "epsilon is_test momentum spatial"},
    {"BatchNormalization", 7, 5, "epsilon momentum spatial"},
    {"BatchNormalization", 9, 5, "epsilon momentum"},
    {"BatchNormalization", 14, 5, "epsilon momentum training_mode"},
    {"Bernoulli", 15, 1, "dtype seed"},
    {"BitCast", 26, 1, "to"},
    {"BitShift", 11, 2, "direction"},
    {"BitwiseAnd", 18, 2, ""},
    {"BitwiseNot", 18, 1, ""},
    {"BitwiseOr", 18, 2, ""},
    {"BitwiseXor", 18, 2, ""},
    {"BlackmanWindow", 17, 1, "output_datatype periodic"},
    {"Cast", 1, 1, "to"},
    {"Cast", 19, 1, "saturate to"},
    {"Cast", 24, 1, "round_mode saturate to"},
    {"CastLike", 15, 2, ""},
    {"CastLike", 19, 2, "saturate"},
    {"CastLike", 24, 2, "round_mode saturate"},
    {"CausalConvWithState", 27, 4, "activation"},
    {"Ceil", 1, 1, "consumed_inputs"},
    {"Ceil", 6, 1, ""},
    {"Celu", 12, 1, "alpha"},
    {"CenterCropPad", 18, 2, "axes"},
    {"Clip", 1, 1, "consumed_inputs max min"},
    {"Clip", 6, 1, "max min"},
    {"Clip", 11, 3, ""},
    {"Col2Im", 18, 3, "dilations pads strides"},
    {"Compress", 9, 2, "axis"},
    {"Concat", 1, kAny, "axis"},
    {"ConcatFromSequence", 11, 1, "axis new_axis"},
    {"Constant", 1, 0, "value"},
    {"Constant", 11, 0, "sparse_value value"},
    {"Constant", 12, 0,
     "sparse_value value value_float value_floats value_int value_ints value_string value_strings"},
    {"ConstantOfShape", 9, 1, "value"},
    {"Conv", 1, 3, "auto_pad dilations group kernel_shape pads strides"},
    {"ConvInteger", 10, 4, "auto_pad dilations group kernel_shape pads strides"},
    {"ConvTranspose", 1, 3, "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
    {"Cos", 7, 1, ""},
    {"Cosh", 9, 1, ""},
    {"Crop", 1, 1, "border scale"},
    {"CumProd", 26, 2, "exclusive reverse"},
    {"CumSum", 11, 2, "exclusive reverse"},
    {"DFT", 17, 2, "axis inverse onesided"},
    {"DFT", 20, 3, "inverse onesided"},
    {"DeformConv", 19, 5, "dilations group kernel_shape offset_group pads strides"},
    {"DepthToSpace", 1, 1, "blocksize"},
    {"DepthToSpace", 11, 1, "blocksize mode"},
    {"DequantizeLinear", 10, 3, ""},
    {"DequantizeLinear", 13, 3, "axis"},
    {"DequantizeLinear", 21, 3, "axis block_size"},
    {"DequantizeLinear", 23, 3, "axis block_size output_dtype"},
    {"Det", 11, 1, ""},
    {"Div", 1, 2, "axis broadcast consumed_inputs"},
    {"Div", 6, 2, "axis broadcast"},
    {"Div", 7, 2, ""},
    {"Dropout", 1, 1, "consumed_inputs is_test ratio"},
    {"Dropout", 6, 1, "is_test ratio"},
    {"Dropout", 7, 1, "ratio"},
    {"Dropout", 12, 3, "seed"},
    {"DynamicQuantizeLinear", 11, 1, ""},
    {"Einsum", 12, kAny, "equation"},
    {"Elu", 1, 1, "alpha consumed_inputs"},
    {"Elu", 6, 1, "alpha"},
    {"Equal", 1, 2, "axis broadcast"},
    {"Equal", 7, 2, ""},
    {"Erf", 9, 1, ""},
    {"Exp", 1, 1, "consumed_inputs"},
    {"Exp", 6, 1, ""},
    {"Expand", 8, 2, ""},
    {"EyeLike", 9, 1, "dtype k"},
    {"Flatten", 1, 1, "axis"},
    {"Floor", 1, 1, "consumed_inputs"},
    {"Floor", 6, 1, ""},
    {"GRU", 1, 6, "activation_alpha activation_beta activations clip direction hidden_size output_sequence"},
    {"GRU", 3, 6,
     "activation_alpha activation_beta activations clip direction hidden_size linear_before_reset "
     "output_sequence"},
    {"GRU", 7, 6,
     "activation_alpha activation_beta activations clip direction hidden_size linear_before_reset"},
    {"GRU", 14, 6,
     "activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset"},
    {"Gather", 1, 2, "axis"},
    {"GatherElements", 11, 2, "axis"},
    {"GatherND", 11, 2, ""},
    {"GatherND", 12, 2, "batch_dims"},
    {"Gelu", 20, 1, "approximate"},
    {"Gemm", 1, 3, "alpha beta broadcast transA transB"},
    {"Gemm", 7, 3, "alpha beta transA transB"},
    {"GlobalAveragePool", 1, 1, ""},
    {"GlobalLpPool", 1, 1, "p"},
    {"GlobalMaxPool", 1, 1, ""},
    {"Greater", 1, 2, "axis broadcast"},
    {"Greater", 7, 2, ""},
    {"GreaterOrEqual", 12, 2, ""},
    {"GridSample", 16, 2, "align_corners mode padding_mode"},
    {"GroupNormalization", 18, 3, "epsilon num_groups"},
    {"GroupNormalization", 21, 3, "epsilon num_groups stash_type"},
    {"HammingWindow", 17, 1, "output_datatype periodic"},
    {"HannWindow", 17, 1, "output_datatype periodic"},
    {"HardSigmoid", 1, 1, "alpha beta consumed_inputs"},
    {"HardSigmoid", 6, 1, "alpha beta"},
    {"HardSwish", 14, 1, ""},
    {"Hardmax", 1, 1, "axis"},
    {"Identity", 1, 1, ""},
    {"If", 1, 1, "else_branch then_branch"},
    {"ImageDecoder", 20, 1, "pixel_format"},
    {"ImageScaler", 1, 1, "bias scale"},
    {"InstanceNormalization", 1, 3, "consumed_inputs epsilon"},
    {"InstanceNormalization", 6, 3, "epsilon"},
    {"IsInf", 10, 1, "detect_negative detect_positive"},
    {"IsNaN", 9, 1, ""},
    {"LRN", 1, 1, "alpha beta bias size"},
    {"LSTM", 1, 8,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget output_sequence"},
    {"LSTM", 7, 8, "activation_alpha activation_beta activations clip direction hidden_size input_forget"},
    {"LSTM", 14, 8,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget layout"},
    {"LayerNormalization", 17, 3, "axis epsilon stash_type"},
    {"LeakyRelu", 1, 1, "alpha consumed_inputs"},
    {"LeakyRelu", 6, 1, "alpha"},
    {"Less", 1, 2, "axis broadcast"},
    {"Less", 7, 2, ""},
    {"LessOrEqual", 12, 2, ""},
    {"LinearAttention", 27, 6, "chunk_size kv_num_heads q_num_heads scale update_rule"},
    {"Log", 1, 1, "consumed_inputs"},
    {"Log", 6, 1, ""},
    {"LogSoftmax", 1, 1, "axis"},
    {"Loop", 1, kAny, "body"},
    {"LpNormalization", 1, 1, "axis p"},
    {"LpPool", 1, 1, "auto_pad kernel_shape p pads strides"},
    {"LpPool", 18, 1, "auto_pad ceil_mode dilations kernel_shape p pads strides"},
    {"MatMul", 1, 2, ""},
    {"MatMulInteger", 10, 4, ""},
    {"Max", 1, kAny, "consumed_inputs"},
    {"Max", 6, kAny, ""},
    {"MaxPool", 1, 1, "auto_pad kernel_shape pads strides"},
    {"MaxPool", 8, 1, "auto_pad kernel_shape pads storage_order strides"},
    {"MaxPool", 10, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"},
    {"MaxRoiPool", 1, 2, "pooled_shape spatial_scale"},
    {"MaxUnpool", 9, 3, "kernel_shape pads strides"},
    {"Mean", 1, kAny, "consumed_inputs"},
    {"Mean", 6, kAny, ""},
    {"MeanVarianceNormalization", 9, 1, "axes"},
    {"MelWeightMatrix", 17, 5, "output_datatype"},
    {"Min", 1, kAny, "consumed_inputs"},
    {"Min", 6, kAny, ""},
    {"Mish", 18, 1, ""},
    {"Mod", 10, 2, "fmod"},
    {"Mul", 1, 2, "axis broadcast consumed_inputs"},
    {"Mul", 6, 2, "axis broadcast"},
    {"Mul", 7, 2, ""},
    {"Multinomial", 7, 1, "dtype sample_size seed"},
    {"Neg", 1, 1, "consumed_inputs"},
    {"Neg", 6, 1, ""},
    {"NegativeLogLikelihoodLoss", 12, 3, "ignore_index reduction"},
    {"NonMaxSuppression", 10, 5, "center_point_box"},
    {"NonZero", 9, 1, ""},
    {"Not", 1, 1, ""},
    {"OneHot", 9, 3, "axis"},
    {"Optional", 15, 1, "type"},
    {"OptionalGetElement", 15, 1, ""},
    {"OptionalHasElement", 15, 1, ""},
    {"Or", 1, 2, "axis broadcast"},
    {"Or", 7, 2, ""},
    {"PRelu", 1, 2, "consumed_inputs"},
    {"PRelu", 6, 2, ""},
    {"Pad", 1, 1, "mode paddings value"},
    {"Pad", 2, 1, "mode pads value"},
    {"Pad", 11, 3, "mode"},
    {"Pad", 18, 4, "mode"},
    {"ParametricSoftplus", 1, 1, "alpha beta"},
    {"Pow", 1, 2, "axis broadcast"},
    {"Pow", 7, 2, ""},
    {"QLinearConv", 10, 9, "auto_pad dilations group kernel_shape pads strides"},
    {"QLinearMatMul", 10, 8, ""},
    {"QuantizeLinear", 10, 3, ""},
    {"QuantizeLinear", 13, 3, "axis"},
    {"QuantizeLinear", 19, 3, "axis saturate"},
    {"QuantizeLinear", 21, 3, "axis block_size output_dtype saturate"},
    {"QuantizeLinear", 23, 3, "axis block_size output_dtype precision saturate"},
    {"RMSNormalization", 23, 2, "axis epsilon stash_type"},
    {"RNN", 1, 6, "activation_alpha activation_beta activations clip direction hidden_size output_sequence"},
    {"RNN", 7, 6, "activation_alpha activation_beta activations clip direction hidden_size"},
    {"RNN", 14, 6, "activation_alpha activation_beta activations clip direction hidden_size layout"},
    {"RandomNormal", 1, 0, "dtype mean scale seed shape"},
    {"RandomNormalLike", 1, 1, "dtype mean scale seed"},
    {"RandomUniform", 1, 0, "dtype high low seed shape"},
    {"RandomUniformLike", 1, 1, "dtype high low seed"},
    {"Range", 11, 3, ""},
    {"Range", 27, 3, "stash_type"},
    {"Reciprocal", 1, 1, "consumed_inputs"},
    {"Reciprocal", 6, 1, ""},
    {"ReduceL1", 1, 1, "axes keepdims"},
    {"ReduceL1", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceL2", 1, 1, "axes keepdims"},
    {"ReduceL2", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceLogSum", 1, 1, "axes keepdims"},
    {"ReduceLogSum", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceLogSumExp", 1, 1, "axes keepdims"},
    {"ReduceLogSumExp", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceMax", 1, 1, "axes keepdims"},
    {"ReduceMax", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceMean", 1, 1, "axes keepdims"},
    {"ReduceMean", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceMin", 1, 1, "axes keepdims"},
    {"ReduceMin", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceProd", 1, 1, "axes keepdims"},
    {"ReduceProd", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceSum", 1, 1, "axes keepdims"},
    {"ReduceSum", 13, 2, "keepdims noop_with_empty_axes"},
    {"ReduceSumSquare", 1, 1, "axes keepdims"},
    {"ReduceSumSquare", 18, 2, "keepdims noop_with_empty_axes"},
    {"RegexFullMatch", 20, 1, "pattern"},
    {"Relu", 1, 1, "consumed_inputs"},
    {"Relu", 6, 1, ""},
    {"Reshape", 1, 1, "consumed_inputs shape"},
    {"Reshape", 5, 2, ""},
    {"Reshape", 14, 2, "allowzero"},
    {"Resize", 10, 2, "mode"},
    {"Resize", 11, 4,
     "coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode nearest_mode"},
    {"Resize", 18, 4,
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
     "keep_aspect_ratio_policy mode nearest_mode"},
    {"ReverseSequence", 10, 2, "batch_axis time_axis"},
    {"RoiAlign", 10, 3, "mode output_height output_width sampling_ratio spatial_scale"},
    {"RoiAlign", 16, 3,
     "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale"},
    {"RotaryEmbedding", 23, 4, "interleaved num_heads rotary_embedding_dim"},
    {"Round", 11, 1, ""},
    {"STFT", 17, 4, "onesided"},
    {"ScaledTanh", 1, 1, "alpha beta"},
    {"Scan", 8, kAny, "body directions num_scan_inputs"},
    {"Scan", 9, kAny,
     "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions"},
    {"Scatter", 9, 3, "axis"},
    {"ScatterElements", 11, 3, "axis"},
    {"ScatterElements", 16, 3, "axis reduction"},
    {"ScatterND", 11, 3, ""},
    {"ScatterND", 16, 3, "reduction"},
    {"Selu", 1, 1, "alpha consumed_inputs gamma"},
    {"Selu", 6, 1, "alpha gamma"},
    {"SequenceAt", 11, 2, ""},
    {"SequenceConstruct", 11, kAny, ""},
    {"SequenceEmpty", 11, 0, "dtype"},
    {"SequenceErase", 11, 2, ""},
    {"SequenceInsert", 11, 3, ""},
    {"SequenceLength", 11, 1, ""},
    {"SequenceMap", 17, kAny, "body"},
    {"Shape", 1, 1, ""},
    {"Shape", 15, 1, "end start"},
    {"Shrink", 9, 1, "bias lambd"},
    {"Sigmoid", 1, 1, "consumed_inputs"},
    {"Sigmoid", 6, 1, ""},
    {"Sign", 9, 1, ""},
    {"SimplifiedLayerNormalization", 1, 2, "axis epsilon stash_type"},
    {"Sin", 7, 1, ""},
    {"Sinh", 9, 1, ""},
    {"Size", 1, 1, ""},
    {"Slice", 1, 1, "axes ends starts"},
    {"Slice", 10, 5, ""},
    {"Softmax", 1, 1, "axis"},
    {"SoftmaxCrossEntropyLoss", 12, 3, "ignore_index reduction"},
    {"Softplus", 1, 1, ""},
    {"Softsign", 1, 1, ""},
    {"SpaceToDepth", 1, 1, "blocksize"},
    {"SpaceToDepth", 28, 1, "blocksize mode"},
    {"Split", 1, 2, "axis split"},
    {"Split", 2, 1, "axis split"},
    {"Split", 13, 2, "axis"},
    {"Split", 18, 2, "axis num_outputs"},
    {"SplitToSequence", 11, 2, "axis keepdims"},
    {"Sqrt", 1, 1, "consumed_inputs"},
    {"Sqrt", 6, 1, ""},
    {"Squeeze", 1, 1, "axes"},
    {"Squeeze", 13, 2, ""},
    {"StringConcat", 20, 2, ""},
    {"StringNormalizer", 10, 1, "case_change_action is_case_sensitive locale stopwords"},
    {"StringSplit", 20, 1, "delimiter maxsplit"},
    {"Sub", 1, 2, "axis broadcast consumed_inputs"},
    {"Sub", 6, 2, "axis broadcast"},
    {"Sub", 7, 2, ""},
    {"Sum", 1, kAny, "consumed_inputs"},
    {"Sum", 6, kAny, ""},
    {"SwiGLU", 28, 2, "alpha"},
    {"Swish", 24, 1, "alpha"},
    {"Tan", 7, 1, ""},
    {"Tanh", 1, 1, "consumed_inputs"},
    {"Tanh", 6, 1, ""},
    {"TensorScatter", 24, 3, "axis mode"},
    {"TfIdfVectorizer", 9, 1,
     "max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes pool_int64s "
     "pool_strings weights"},
    {"ThresholdedRelu", 10, 1, "alpha"},
    {"Tile", 1, 3, ""},
    {"Tile", 6, 2, ""},
    {"TopK", 1, 1, "axis k"},
    {"TopK", 10, 2, "axis"},
    {"TopK", 11, 2, "axis largest sorted"},
    {"Transpose", 1, 1, "perm"},
    {"Trilu", 14, 2, "upper"},
    {"Unique", 11, 1, "axis sorted"},
    {"Unsqueeze", 1, 1, "axes"},
    {"Unsqueeze", 13, 2, ""},
    {"Upsample", 1, 1, "height_scale mode width_scale"},
    {"Upsample", 7, 1, "mode scales"},
    {"Upsample", 9, 2, "mode"},
    {"Where", 9, 3, ""},
    {"Xor", 1, 2, "axis broadcast"},
    {"Xor", 7, 2, ""},
    {"ArrayFeatureExtractor", 1, 2, "", "ai.onnx.ml"},
    {"Binarizer", 1, 1, "threshold", "ai.onnx.ml"},
    {"CastMap", 1, 1, "cast_to map_form max_map", "ai.onnx.ml"},
    {"CategoryMapper", 1, 1, "cats_int64s cats_strings default_int64 default_string", "ai.onnx.ml"},
    {"DictVectorizer", 1, 1, "int64_vocabulary string_vocabulary", "ai.onnx.ml"},
    {"FeatureVectorizer", 1, kAny, "inputdimensions", "ai.onnx.ml"},
    {"Imputer", 1, 1, "imputed_value_floats imputed_value_int64s replaced_value_float replaced_value_int64",
     "ai.onnx.ml"},
    {"LabelEncoder", 1, 1, "classes_strings default_int64 default_string", "ai.onnx.ml"},
    {"LabelEncoder", 2, 1,
     "default_float default_int64 default_string keys_floats keys_int64s keys_strings values_floats "
     "values_int64s values_strings",
     "ai.onnx.ml"},
    {"LabelEncoder", 4, 1,
     "default_float default_int64 default_string default_tensor keys_floats keys_int64s keys_strings "
     "keys_tensor values_floats values_int64s values_strings values_tensor",
     "ai.onnx.ml"},
    {"LinearClassifier", 1, 1,
     "classlabels_ints classlabels_strings coefficients intercepts multi_class post_transform", "ai.onnx.ml"},
    {"LinearRegressor", 1, 1, "coefficients intercepts post_transform targets", "ai.onnx.ml"},
    {"Normalizer", 1, 1, "norm", "ai.onnx.ml"},
    {"OneHotEncoder", 1, 1, "cats_int64s cats_strings zeros", "ai.onnx.ml"},
    {"SVMClassifier", 1, 1,
     "classlabels_ints classlabels_strings coefficients kernel_params kernel_type post_transform prob_a "
     "prob_b rho support_vectors vectors_per_class",
     "ai.onnx.ml"},
    {"SVMRegressor", 1, 1,
     "coefficients kernel_params kernel_type n_supports one_class post_transform rho support_vectors",
     "ai.onnx.ml"},
    {"Scaler", 1, 1, "offset scale", "ai.onnx.ml"},
    {"TreeEnsemble", 5, 1,
     "aggregate_function leaf_targetids leaf_weights membership_values n_targets nodes_falseleafs "
     "nodes_falsenodeids nodes_featureids nodes_hitrates nodes_missing_value_tracks_true nodes_modes "
     "nodes_splits nodes_trueleafs nodes_truenodeids post_transform tree_roots",
     "ai.onnx.ml"},
    {"TreeEnsembleClassifier", 1, 1,
     "base_values class_ids class_nodeids class_treeids class_weights classlabels_int64s classlabels_strings "
     "nodes_falsenodeids nodes_featureids nodes_hitrates nodes_missing_value_tracks_true nodes_modes "
     "nodes_nodeids nodes_treeids nodes_truenodeids nodes_values post_transform",
     "ai.onnx.ml"},
    {"TreeEnsembleClassifier", 3, 1,
     "base_values base_values_as_tensor class_ids class_nodeids class_treeids class_weights "
     "class_weights_as_tensor classlabels_int64s classlabels_strings nodes_falsenodeids nodes_featureids "
     "nodes_hitrates nodes_hitrates_as_tensor nodes_missing_value_tracks_true nodes_modes nodes_nodeids "
     "nodes_treeids nodes_truenodeids nodes_values nodes_values_as_tensor post_transform",
     "ai.onnx.ml"},
    {"TreeEnsembleRegressor", 1, 1,
     "aggregate_function base_values n_targets nodes_falsenodeids nodes_featureids nodes_hitrates "
     "nodes_missing_value_tracks_true nodes_modes nodes_nodeids nodes_treeids nodes_truenodeids nodes_values "
     "post_transform target_ids target_nodeids target_treeids target_weights",
     "ai.onnx.ml"},
    {"TreeEnsembleRegressor", 3, 1,
     "aggregate_function base_values base_values_as_tensor n_targets nodes_falsenodeids nodes_featureids "
     "nodes_hitrates nodes_hitrates_as_tensor nodes_missing_value_tracks_true nodes_modes nodes_nodeids "
     "nodes_treeids nodes_truenodeids nodes_values nodes_values_as_tensor post_transform target_ids "
     "target_nodeids target_treeids target_weights target_weights_as_tensor",
     "ai.onnx.ml"},
    {"ZipMap", 1, 1, "classlabels_int64s classlabels_strings", "ai.onnx.ml"},
    {"Attention", 1, 7,
     "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes rotary_embedding_dim "
     "scale unidirectional",
     "com.microsoft"},
    {"BiasGelu", 1, 2, "", "com.microsoft"},
    {"DequantizeLinear", 1, 3, "axis", "com.microsoft"},
    {"DynamicQuantizeLSTM", 1, 12,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget", "com.microsoft"},
    {"DynamicQuantizeMatMul", 1, 5, "", "com.microsoft"},
    {"EmbedLayerNormalization", 1, 9, "epsilon mask_index_type", "com.microsoft"},
    {"FastGelu", 1, 2, "", "com.microsoft"},
    {"FusedConv", 1, 4, "activation activation_params auto_pad dilations group kernel_shape pads strides",
     "com.microsoft"},
    {"FusedGemm", 1, 3,
     "activation activation_alpha activation_beta activation_gamma alpha beta transA transB",
     "com.microsoft"},
    {"FusedMatMul", 1, 2, "alpha transA transB transBatchA transBatchB", "com.microsoft"},
    {"GatherBlockQuantized", 1, 4, "bits block_size gather_axis quantize_axis", "com.microsoft"},
    {"GatherND", 1, 2, "", "com.microsoft"},
    {"Gelu", 1, 1, "", "com.microsoft"},
    {"GridSample", 1, 2, "align_corners mode padding_mode", "com.microsoft"},
    {"GroupQueryAttention", 1, 16,
     "causal do_rotary k_quant_type kv_cache_bit_width kv_num_heads local_window_size num_heads "
     "qk_norm_epsilon qk_output rotary_interleaved scale sliding_window_cache smooth_softmax softcap "
     "v_quant_type",
     "com.microsoft"},
    {"MatMulIntegerToFloat", 1, 7, "", "com.microsoft"},
    {"MatMulNBits", 1, 6, "K N accuracy_level bits block_size weight_prepacked", "com.microsoft"},
    {"MultiHeadAttention", 1, 10, "mask_filter_value num_heads scale unidirectional", "com.microsoft"},
    {"NhwcFusedConv", 1, 4, "activation activation_params auto_pad dilations group kernel_shape pads strides",
     "com.microsoft"},
    {"NhwcMaxPool", 1, 1, "auto_pad ceil_mode dilations kernel_shape pads strides", "com.microsoft"},
    {"Pad", 1, 3, "mode", "com.microsoft"},
    {"QAttention", 1, 9,
     "do_rotary mask_filter_value num_heads past_present_share_buffer scale unidirectional", "com.microsoft"},
    {"QGemm", 1, 9, "alpha transA transB", "com.microsoft"},
    {"QLinearAdd", 1, 8, "", "com.microsoft"},
    {"QLinearAveragePool", 1, 5,
     "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides", "com.microsoft"},
    {"QLinearConcat", 1, kAny, "axis", "com.microsoft"},
    {"QLinearConv", 1, 9, "auto_pad channels_last dilations group kernel_shape pads strides",
     "com.microsoft"},
    {"QLinearGlobalAveragePool", 1, 5, "channels_last", "com.microsoft"},
    {"QLinearLeakyRelu", 1, 5, "alpha", "com.microsoft"},
    {"QLinearMul", 1, 8, "", "com.microsoft"},
    {"QLinearSigmoid", 1, 5, "", "com.microsoft"},
    {"QLinearSoftmax", 1, 5, "axis opset", "com.microsoft"},
    {"QLinearWhere", 1, 9, "", "com.microsoft"},
    {"QuantizeLinear", 1, 3, "axis", "com.microsoft"},
    {"QuickGelu", 1, 1, "alpha", "com.microsoft"},
    {"Range", 1, 3, "", "com.microsoft"},
    {"RotaryEmbedding", 1, 4, "interleaved is_packed_batching num_heads rotary_embedding_dim scale",
     "com.microsoft"},
    {"SkipLayerNormalization", 1, 5, "epsilon", "com.microsoft"},
    {"SkipSimplifiedLayerNormalization", 1, 4, "epsilon", "com.microsoft"},
    {"TransposeMatMul", 1, 2, "alpha transA transB", "com.microsoft"},
    {"Trilu", 1, 2, "upper", "com.microsoft"},
    {"FlexAttention", 1, 3, "prob_mod scale score_mod softmax_precision", "ai.onnx.preview"},
    {"Adagrad", 1, kAny, "decay_factor epsilon norm_coefficient", "ai.onnx.preview.training"},
    {"Adam", 1, kAny, "alpha beta epsilon norm_coefficient norm_coefficient_post",
     "ai.onnx.preview.training"},
    {"Gradient", 1, kAny, "xs y zs", "ai.onnx.preview.training"},
    {"Momentum", 1, kAny, "alpha beta mode norm_coefficient", "ai.onnx.preview.training"},
};

using Versions = std::vector<const Signature*>;

const std::map<std::pair<std::string_view, std::string_view>, Versions>& table() {
  static const auto signatures = [] {
    std::map<std::pair<std::string_view, std::string_view>, Versions> all;
    for (const Signature& signature : kSignatures)
      all[{signature.domain, signature.op_type}].push_back(&signature);
    return all;
  }();
  return signatures;
}

// Null where the op is newer than the model: programs had it with attributes of their own before ONNX did.
const Signature* find_signature(std::string_view domain, std::string_view op_type, int64_t opset) {
  const Signature* found = nullptr;
  for (const Signature* version : table().at({domain, op_type}))
    if (version->since <= opset)
      found = version;
  return found;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// Ops that mean something else by the same inputs and attributes from an opset on.
constexpr std::pair<std::string_view, int64_t> kOtherMeaning[] = {
    {"AveragePool", 19}, {"GridSample", 20}, {"GroupNormalization", 21}, {"Hardmax", 13}, {"LogSoftmax", 13},
    {"RoiAlign", 16},    {"Softmax", 13},
};

}  // namespace

bool has_signature(std::string_view domain, std::string_view op_type) {
  return table().contains({domain, op_type});
}

void check_signature(const NodeProto& node, int64_t opset) {
  const Signature* signature = find_signature(canonical_domain(node.domain), node.op_type, opset);
  if (signature == nullptr)
    return;
  if (node.input.size() > signature->most_inputs)
    throw user_error("{}: it has {} inputs, but takes no more than {} in opset {}", node.op_type,
                     node.input.size(), signature->most_inputs, opset);
  const std::vector<std::string_view> known = split_words(signature->attributes);
  std::vector<std::string_view> given;
  for (const AttributeProto& attribute : node.attribute) {
    const bool is_note = attribute.name.starts_with("__");  // of the program that wrote the model, to itself
    if (!is_note && std::find(known.begin(), known.end(), attribute.name) == known.end())
      throw user_error("{}: attribute {} is given, but in opset {} it has {}", node.op_type, attribute.name,
                       opset,
                       known.empty() ? "no attributes" : fmt::format("only {}", fmt::join(known, ", ")));
    if (std::find(given.begin(), given.end(), attribute.name) != given.end())
      throw user_error("{}: attribute {} is given twice", node.op_type, attribute.name);
    given.push_back(attribute.name);
  }
}

std::optional<OpsetRange> same_opsets(std::string_view domain, std::string_view op_type, int64_t opset) {
  const Signature* signature = find_signature(domain, op_type, opset);
  if (signature == nullptr)
    return std::nullopt;
  OpsetRange range = {signature->since, kNewestOpset};
  const auto bound_by = [&](int64_t change) {
    if (change > opset)
      range.until = std::min(range.until, change - 1);
    else
      range.since = std::max(range.since, change);
  };
  for (const Signature* version : table().at({domain, op_type}))
    bound_by(version->since);
  if (domain.empty())
    for (const auto& [changed, from] : kOtherMeaning)
      if (changed == op_type)
        bound_by(from);
  return range;
}

bool allows(std::string_view domain, std::string_view op_type, int64_t opset, size_t inputs,
            std::span<const std::string_view> attributes) {
  const Signature* signature = find_signature(domain, op_type, opset);
  if (signature == nullptr || inputs > signature->most_inputs)
    return false;
  const std::vector<std::string_view> known = split_words(signature->attributes);
  return std::ranges::all_of(attributes,
                             [&](std::string_view name) { return std::ranges::count(known, name) > 0; });
}

}  // namespace tenon::onnx
