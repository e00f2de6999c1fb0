module @loop attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=2, "tensor"=4]>
  func.func public @main(%arg0: tensor<5x32x32xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tensor"}, {}]>, tf.aliasing_output = 0 : i32} loc("w"), %arg1: tensor<16x32xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<5x32x32xbf16>, tensor<16x32xbf16> {jax.result_info = "x"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg1) : tensor<i32>, tensor<16x32xbf16>
    cond {
      %c_1 = stablehlo.constant dense<5> : tensor<i32>
      %1 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = func.call @layer(%arg0, %iterArg, %iterArg_0) : (tensor<5x32x32xbf16>, tensor<i32>, tensor<16x32xbf16>) -> tensor<16x32xbf16> loc(#loc2)
      %c_1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %iterArg, %c_1 : tensor<i32>
      stablehlo.return %2, %1 : tensor<i32>, tensor<16x32xbf16>
    } loc(#loc1)
    %3 = "stablehlo.case"(%0#0) ({
      stablehlo.return %0#1 : tensor<16x32xbf16>
    }, {
      %4 = stablehlo.negate %0#1 : tensor<16x32xbf16>
      stablehlo.return %4 : tensor<16x32xbf16>
    }) : (tensor<i32>) -> tensor<16x32xbf16>
    return %arg0, %3 : tensor<5x32x32xbf16>, tensor<16x32xbf16>
  }
  func.func private @layer(%arg0: tensor<5x32x32xbf16>, %arg1: tensor<i32>, %arg2: tensor<16x32xbf16>) -> tensor<16x32xbf16> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, sizes = [1, 32, 32] : (tensor<5x32x32xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x32xbf16>
    %1 = stablehlo.reshape %0 : (tensor<1x32x32xbf16>) -> tensor<32x32xbf16>
    %2 = stablehlo.dot_general %arg2, %1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xbf16>, tensor<32x32xbf16>) -> tensor<16x32xbf16> loc(#loc3)
    return %2 : tensor<16x32xbf16>
  }
}
#loc = loc("model.py":12:3 to :9)
#loc1 = loc("jit(f)/while"(#loc))
#loc2 = loc("jit(f)/while/body/closed_call"(#loc))
#loc3 = loc("dot_general"(callsite(#loc at #loc1)))
