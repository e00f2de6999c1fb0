module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=2, "tensor"=4]> {stablehlo.mesh = {axes = [{name = "data", size = 2 : i64}, {name = "tensor", size = 4 : i64}]}}
  func.func public @main(%arg0: tensor<16x32xbf16>, %arg1: tensor<32x32xbf16>) -> (tensor<16xi32> {jax.result_info = "result"}) {
    %0 = stablehlo.slice %arg0 [0:1, 0:1] : (tensor<16x32xbf16>) -> tensor<1x1xbf16>
    %1 = stablehlo.reshape %0 : (tensor<1x1xbf16>) -> tensor<bf16>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %2 = stablehlo.compare GT, %1, %cst, FLOAT : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    %3 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"data"}, {}]>, <@mesh, [{}, {"tensor"}]>] out_shardings=[<@mesh, [{"data"}, {}]>] manual_axes={"data", "tensor"} (%arg2: tensor<8x32xbf16>, %arg3: tensor<32x8xbf16>) {
      %7 = stablehlo.dot_general %arg2, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x32xbf16>, tensor<32x8xbf16>) -> tensor<8x8xbf16>
      %8 = "stablehlo.all_gather"(%7) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> : (tensor<8x8xbf16>) -> tensor<8x32xbf16>
      %9 = "stablehlo.all_reduce"(%8) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<bf16>, %arg5: tensor<bf16>):
        %10 = stablehlo.add %arg4, %arg5 : tensor<bf16>
        stablehlo.return %10 : tensor<bf16>
      }) : (tensor<8x32xbf16>) -> tensor<8x32xbf16>
      sdy.return %9 : tensor<8x32xbf16>
    } : (tensor<16x32xbf16>, tensor<32x32xbf16>) -> tensor<16x32xbf16>
    %4 = stablehlo.convert %2 : (tensor<i1>) -> tensor<i32>
    %5 = "stablehlo.case"(%4) ({
      %7 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
      %8 = stablehlo.dot_general %arg1, %7, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
      %9 = stablehlo.dot_general %3, %8, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xbf16>, tensor<32x32xbf16>) -> tensor<16x32xbf16>
      stablehlo.return %9 : tensor<16x32xbf16>
    }, {
      %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<bf16>
      %7 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<16x32xbf16>
      %8 = stablehlo.multiply %3, %7 : tensor<16x32xbf16>
      stablehlo.return %8 : tensor<16x32xbf16>
    }) : (tensor<i32>) -> tensor<16x32xbf16>
    %6 = call @argmax(%5) : (tensor<16x32xbf16>) -> tensor<16xi32>
    return %6 : tensor<16xi32>
  }
  func.func private @argmax(%arg0: tensor<16x32xbf16>) -> tensor<16xi32> {
    %0 = stablehlo.iota dim = 1 : tensor<16x32xi32>
    %cst = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<16x32xbf16>, tensor<16x32xi32>, tensor<bf16>, tensor<i32>) -> (tensor<16xbf16>, tensor<16xi32>)
     reducer(%arg1: tensor<bf16>, %arg3: tensor<bf16>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<bf16>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<bf16>, tensor<i32>
    }
    return %1#1 : tensor<16xi32>
  }
}

