module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x1024x4096xbf16> {mhlo.sharding = "{devices=[1,2,4]<=[8]}"}, %arg1: tensor<4x4096x1024xbf16> {mhlo.sharding = "{devices=[1,4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}, %arg2: tensor<512x1024xbf16> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}) -> (tensor<4x1024x4096xbf16> {jax.result_info = "result[0]"}, tensor<4x4096x1024xbf16> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<4x512x1024xbf16>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %1 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<4x512x4096xbf16>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %2 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<bf16>) -> tensor<4x512x4096xbf16>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %3 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<bf16>) -> tensor<4x512x4096xbf16>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %4 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<bf16>) -> tensor<4x512x4096xbf16>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %5 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<bf16>) -> tensor<4x512x4096xbf16>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %6 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<bf16>) -> tensor<4x512x4096xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %7:12 = stablehlo.while(%iterArg = %arg0, %iterArg_14 = %arg1, %iterArg_15 = %cst, %iterArg_16 = %c, %iterArg_17 = %arg2, %iterArg_18 = %0, %iterArg_19 = %1, %iterArg_20 = %2, %iterArg_21 = %3, %iterArg_22 = %4, %iterArg_23 = %5, %iterArg_24 = %6) : tensor<4x1024x4096xbf16>, tensor<4x4096x1024xbf16>, tensor<bf16>, tensor<i32>, tensor<512x1024xbf16>, tensor<4x512x1024xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>
    cond {
      %c_25 = stablehlo.constant dense<4> : tensor<i32>
      %43 = stablehlo.compare LT, %iterArg_16, %c_25, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %43 : tensor<i1>
    } do {
      %43 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_16) : (tensor<4x1024x4096xbf16>, tensor<i32>) -> tensor<1024x4096xbf16>
      %44 = func.call @dynamic_index_in_dim_0(%iterArg_14, %iterArg_16) : (tensor<4x4096x1024xbf16>, tensor<i32>) -> tensor<4096x1024xbf16>
      %45:8 = func.call @closed_call(%iterArg_15, %iterArg_17, %43, %44) : (tensor<bf16>, tensor<512x1024xbf16>, tensor<1024x4096xbf16>, tensor<4096x1024xbf16>) -> (tensor<512x1024xbf16>, tensor<512x1024xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>)
      %46 = func.call @dynamic_update_index_in_dim(%iterArg_18, %45#1, %iterArg_16) : (tensor<4x512x1024xbf16>, tensor<512x1024xbf16>, tensor<i32>) -> tensor<4x512x1024xbf16>
      %47 = func.call @dynamic_update_index_in_dim_1(%iterArg_19, %45#2, %iterArg_16) : (tensor<4x512x4096xbf16>, tensor<512x4096xbf16>, tensor<i32>) -> tensor<4x512x4096xbf16>
      %48 = func.call @dynamic_update_index_in_dim_1(%iterArg_20, %45#3, %iterArg_16) : (tensor<4x512x4096xbf16>, tensor<512x4096xbf16>, tensor<i32>) -> tensor<4x512x4096xbf16>
      %49 = func.call @dynamic_update_index_in_dim_1(%iterArg_21, %45#4, %iterArg_16) : (tensor<4x512x4096xbf16>, tensor<512x4096xbf16>, tensor<i32>) -> tensor<4x512x4096xbf16>
      %50 = func.call @dynamic_update_index_in_dim_1(%iterArg_22, %45#5, %iterArg_16) : (tensor<4x512x4096xbf16>, tensor<512x4096xbf16>, tensor<i32>) -> tensor<4x512x4096xbf16>
      %51 = func.call @dynamic_update_index_in_dim_1(%iterArg_23, %45#6, %iterArg_16) : (tensor<4x512x4096xbf16>, tensor<512x4096xbf16>, tensor<i32>) -> tensor<4x512x4096xbf16>
      %52 = func.call @dynamic_update_index_in_dim_1(%iterArg_24, %45#7, %iterArg_16) : (tensor<4x512x4096xbf16>, tensor<512x4096xbf16>, tensor<i32>) -> tensor<4x512x4096xbf16>
      %c_25 = stablehlo.constant dense<1> : tensor<i32>
      %53 = stablehlo.add %iterArg_16, %c_25 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_14, %iterArg_15, %53, %45#0, %46, %47, %48, %49, %50, %51, %52 : tensor<4x1024x4096xbf16>, tensor<4x4096x1024xbf16>, tensor<bf16>, tensor<i32>, tensor<512x1024xbf16>, tensor<4x512x1024xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>
    }
    %8 = stablehlo.slice %arg0 [0:1, 0:1024, 0:4096] : (tensor<4x1024x4096xbf16>) -> tensor<1x1024x4096xbf16>
    %9 = stablehlo.reshape %8 : (tensor<1x1024x4096xbf16>) -> tensor<1024x4096xbf16>
    %10 = stablehlo.custom_call @Sharding(%7#4) {backend_config = "", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<512x1024xbf16>) -> tensor<512x1024xbf16>
    %11 = stablehlo.custom_call @SPMDFullToShardShape(%10) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<512x1024xbf16>) -> tensor<256x256xbf16>
    %12 = stablehlo.custom_call @Sharding(%9) {backend_config = "", mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"} : (tensor<1024x4096xbf16>) -> tensor<1024x4096xbf16>
    %13 = stablehlo.custom_call @SPMDFullToShardShape(%12) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<1024x4096xbf16>) -> tensor<256x4096xbf16>
    %14:2 = call @shmap_body(%11, %13) : (tensor<256x256xbf16>, tensor<256x4096xbf16>) -> (tensor<256x4096xbf16>, tensor<256x4096xbf16>)
    %15 = stablehlo.custom_call @Sharding(%14#0) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<256x4096xbf16>) -> tensor<256x4096xbf16>
    %16 = stablehlo.custom_call @SPMDShardToFullShape(%15) {backend_config = "", mhlo.sharding = "{devices=[8,1]<=[8]}"} : (tensor<256x4096xbf16>) -> tensor<2048x4096xbf16>
    %17 = stablehlo.custom_call @Sharding(%14#1) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<256x4096xbf16>) -> tensor<256x4096xbf16>
    %18 = stablehlo.custom_call @SPMDShardToFullShape(%17) {backend_config = "", mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<256x4096xbf16>) -> tensor<512x4096xbf16>
    %19 = stablehlo.convert %18 : (tensor<512x4096xbf16>) -> tensor<512x4096xf32>
    %cst_7 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<512x4096xf32>
    %21 = stablehlo.multiply %20, %19 : tensor<512x4096xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_9 = stablehlo.constant dense<0x4A000000> : tensor<f32>
    %22 = stablehlo.divide %cst_8, %cst_9 : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<512x4096xf32>
    %24 = stablehlo.multiply %23, %21 : tensor<512x4096xf32>
    %25 = stablehlo.convert %24 : (tensor<512x4096xf32>) -> tensor<512x4096xbf16>
    %26 = stablehlo.custom_call @Sharding(%25) {backend_config = "", mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<512x4096xbf16>) -> tensor<512x4096xbf16>
    %27 = stablehlo.custom_call @SPMDFullToShardShape(%26) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<512x4096xbf16>) -> tensor<256x4096xbf16>
    %28 = stablehlo.custom_call @Sharding(%16) {backend_config = "", mhlo.sharding = "{devices=[8,1]<=[8]}"} : (tensor<2048x4096xbf16>) -> tensor<2048x4096xbf16>
    %29 = stablehlo.custom_call @SPMDFullToShardShape(%28) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<2048x4096xbf16>) -> tensor<256x4096xbf16>
    %30 = stablehlo.custom_call @Sharding(%7#4) {backend_config = "", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<512x1024xbf16>) -> tensor<512x1024xbf16>
    %31 = stablehlo.custom_call @SPMDFullToShardShape(%30) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<512x1024xbf16>) -> tensor<256x256xbf16>
    %32:2 = call @shmap_body_2(%27, %29, %31) : (tensor<256x4096xbf16>, tensor<256x4096xbf16>, tensor<256x256xbf16>) -> (tensor<256x256xbf16>, tensor<256x4096xbf16>)
    %33 = stablehlo.custom_call @Sharding(%32#0) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<256x256xbf16>) -> tensor<256x256xbf16>
    %34 = stablehlo.custom_call @SPMDShardToFullShape(%33) {backend_config = "", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<256x256xbf16>) -> tensor<512x1024xbf16>
    %35 = stablehlo.custom_call @Sharding(%32#1) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<256x4096xbf16>) -> tensor<256x4096xbf16>
    %36 = stablehlo.custom_call @SPMDShardToFullShape(%35) {backend_config = "", mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"} : (tensor<256x4096xbf16>) -> tensor<1024x4096xbf16>
    %37 = stablehlo.broadcast_in_dim %36, dims = [1, 2] : (tensor<1024x4096xbf16>) -> tensor<1x1024x4096xbf16>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %38 = stablehlo.pad %37, %cst_10, low = [0, 0, 0], high = [3, 0, 0], interior = [0, 0, 0] : (tensor<1x1024x4096xbf16>, tensor<bf16>) -> tensor<4x1024x4096xbf16>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %39 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<bf16>) -> tensor<4x1024x4096xbf16>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %40 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<bf16>) -> tensor<4x4096x1024xbf16>
    %c_13 = stablehlo.constant dense<0> : tensor<i32>
    %41:13 = stablehlo.while(%iterArg = %arg0, %iterArg_14 = %7#5, %iterArg_15 = %7#6, %iterArg_16 = %7#7, %iterArg_17 = %7#8, %iterArg_18 = %7#9, %iterArg_19 = %7#10, %iterArg_20 = %arg1, %iterArg_21 = %7#11, %iterArg_22 = %c_13, %iterArg_23 = %34, %iterArg_24 = %39, %iterArg_25 = %40) : tensor<4x1024x4096xbf16>, tensor<4x512x1024xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x4096x1024xbf16>, tensor<4x512x4096xbf16>, tensor<i32>, tensor<512x1024xbf16>, tensor<4x1024x4096xbf16>, tensor<4x4096x1024xbf16>
    cond {
      %c_26 = stablehlo.constant dense<4> : tensor<i32>
      %43 = stablehlo.compare LT, %iterArg_22, %c_26, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %43 : tensor<i1>
    } do {
      %c_26 = stablehlo.constant dense<4> : tensor<i32>
      %43 = stablehlo.subtract %c_26, %iterArg_22 : tensor<i32>
      %c_27 = stablehlo.constant dense<1> : tensor<i32>
      %44 = stablehlo.subtract %43, %c_27 : tensor<i32>
      %45 = func.call @dynamic_index_in_dim(%iterArg, %44) : (tensor<4x1024x4096xbf16>, tensor<i32>) -> tensor<1024x4096xbf16>
      %46 = func.call @dynamic_index_in_dim_3(%iterArg_14, %44) : (tensor<4x512x1024xbf16>, tensor<i32>) -> tensor<512x1024xbf16>
      %47 = func.call @dynamic_index_in_dim_4(%iterArg_15, %44) : (tensor<4x512x4096xbf16>, tensor<i32>) -> tensor<512x4096xbf16>
      %48 = func.call @dynamic_index_in_dim_4(%iterArg_16, %44) : (tensor<4x512x4096xbf16>, tensor<i32>) -> tensor<512x4096xbf16>
      %49 = func.call @dynamic_index_in_dim_4(%iterArg_17, %44) : (tensor<4x512x4096xbf16>, tensor<i32>) -> tensor<512x4096xbf16>
      %50 = func.call @dynamic_index_in_dim_4(%iterArg_18, %44) : (tensor<4x512x4096xbf16>, tensor<i32>) -> tensor<512x4096xbf16>
      %51 = func.call @dynamic_index_in_dim_4(%iterArg_19, %44) : (tensor<4x512x4096xbf16>, tensor<i32>) -> tensor<512x4096xbf16>
      %52 = func.call @dynamic_index_in_dim_0(%iterArg_20, %44) : (tensor<4x4096x1024xbf16>, tensor<i32>) -> tensor<4096x1024xbf16>
      %53 = func.call @dynamic_index_in_dim_4(%iterArg_21, %44) : (tensor<4x512x4096xbf16>, tensor<i32>) -> tensor<512x4096xbf16>
      %54:3 = func.call @closed_call_5(%iterArg_23, %45, %46, %47, %48, %49, %50, %51, %52, %53) : (tensor<512x1024xbf16>, tensor<1024x4096xbf16>, tensor<512x1024xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<4096x1024xbf16>, tensor<512x4096xbf16>) -> (tensor<512x1024xbf16>, tensor<1024x4096xbf16>, tensor<4096x1024xbf16>)
      %55 = func.call @dynamic_update_index_in_dim_6(%iterArg_24, %54#1, %44) : (tensor<4x1024x4096xbf16>, tensor<1024x4096xbf16>, tensor<i32>) -> tensor<4x1024x4096xbf16>
      %56 = func.call @dynamic_update_index_in_dim_7(%iterArg_25, %54#2, %44) : (tensor<4x4096x1024xbf16>, tensor<4096x1024xbf16>, tensor<i32>) -> tensor<4x4096x1024xbf16>
      %c_28 = stablehlo.constant dense<1> : tensor<i32>
      %57 = stablehlo.add %iterArg_22, %c_28 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_14, %iterArg_15, %iterArg_16, %iterArg_17, %iterArg_18, %iterArg_19, %iterArg_20, %iterArg_21, %57, %54#0, %55, %56 : tensor<4x1024x4096xbf16>, tensor<4x512x1024xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x512x4096xbf16>, tensor<4x4096x1024xbf16>, tensor<4x512x4096xbf16>, tensor<i32>, tensor<512x1024xbf16>, tensor<4x1024x4096xbf16>, tensor<4x4096x1024xbf16>
    }
    %42 = stablehlo.add %38, %41#11 : tensor<4x1024x4096xbf16>
    return %42, %41#12 : tensor<4x1024x4096xbf16>, tensor<4x4096x1024xbf16>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<4x1024x4096xbf16>, %arg1: tensor<i32>) -> tensor<1024x4096xbf16> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 1024, 4096] : (tensor<4x1024x4096xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x4096xbf16>
    %1 = stablehlo.reshape %0 : (tensor<1x1024x4096xbf16>) -> tensor<1024x4096xbf16>
    return %1 : tensor<1024x4096xbf16>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<4x4096x1024xbf16>, %arg1: tensor<i32>) -> tensor<4096x1024xbf16> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 4096, 1024] : (tensor<4x4096x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4096x1024xbf16>
    %1 = stablehlo.reshape %0 : (tensor<1x4096x1024xbf16>) -> tensor<4096x1024xbf16>
    return %1 : tensor<4096x1024xbf16>
  }
  func.func private @closed_call(%arg0: tensor<bf16>, %arg1: tensor<512x1024xbf16>, %arg2: tensor<1024x4096xbf16>, %arg3: tensor<4096x1024xbf16>) -> (tensor<512x1024xbf16>, tensor<512x1024xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>) {
    %0 = stablehlo.dot_general %arg1, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<512x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<512x4096xbf16>
    %1 = stablehlo.multiply %0, %0 : tensor<512x4096xbf16>
    %2 = stablehlo.multiply %1, %0 : tensor<512x4096xbf16>
    %3 = stablehlo.multiply %0, %0 : tensor<512x4096xbf16>
    %cst = stablehlo.constant dense<3.000000e+00> : tensor<bf16>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<512x4096xbf16>
    %5 = stablehlo.multiply %4, %3 : tensor<512x4096xbf16>
    %cst_0 = stablehlo.constant dense<4.467770e-02> : tensor<bf16>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<512x4096xbf16>
    %7 = stablehlo.multiply %6, %2 : tensor<512x4096xbf16>
    %8 = stablehlo.add %0, %7 : tensor<512x4096xbf16>
    %cst_1 = stablehlo.constant dense<7.968750e-01> : tensor<bf16>
    %9 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<512x4096xbf16>
    %10 = stablehlo.multiply %9, %8 : tensor<512x4096xbf16>
    %11 = stablehlo.tanh %10 : tensor<512x4096xbf16>
    %12 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<bf16>) -> tensor<512x4096xbf16>
    %13 = stablehlo.subtract %12, %11 : tensor<512x4096xbf16>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %14 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<bf16>) -> tensor<512x4096xbf16>
    %15 = stablehlo.add %14, %11 : tensor<512x4096xbf16>
    %cst_3 = stablehlo.constant dense<5.000000e-01> : tensor<bf16>
    %16 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<bf16>) -> tensor<512x4096xbf16>
    %17 = stablehlo.multiply %16, %15 : tensor<512x4096xbf16>
    %18 = stablehlo.multiply %0, %17 : tensor<512x4096xbf16>
    %19 = stablehlo.dot_general %18, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<512x4096xbf16>, tensor<4096x1024xbf16>) -> tensor<512x1024xbf16>
    %20 = stablehlo.custom_call @Sharding(%19) {backend_config = "", mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<512x1024xbf16>) -> tensor<512x1024xbf16>
    %21 = stablehlo.add %arg1, %20 : tensor<512x1024xbf16>
    return %21, %arg1, %5, %11, %13, %17, %0, %18 : tensor<512x1024xbf16>, tensor<512x1024xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>, tensor<512x4096xbf16>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<4x512x1024xbf16>, %arg1: tensor<512x1024xbf16>, %arg2: tensor<i32>) -> tensor<4x512x1024xbf16> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<512x1024xbf16>) -> tensor<1x512x1024xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<4x512x1024xbf16>, tensor<1x512x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x512x1024xbf16>
    return %1 : tensor<4x512x1024xbf16>
  }
  func.func private @dynamic_update_index_in_dim_1(%arg0: tensor<4x512x4096xbf16>, %arg1: tensor<512x4096xbf16>, %arg2: tensor<i32>) -> tensor<4x512x4096xbf16> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<512x4096xbf16>) -> tensor<1x512x4096xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<4x512x4096xbf16>, tensor<1x512x4096xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x512x4096xbf16>
    return %1 : tensor<4x512x4096xbf16>
  }
  func.func private @shmap_body(%arg0: tensor<256x256xbf16>, %arg1: tensor<256x4096xbf16>) -> (tensor<256x4096xbf16> {jax.result_info = "[('data', 'tensor'), None]"}, tensor<256x4096xbf16> {jax.result_info = "[('data',), None]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<256x256xbf16>, tensor<256x4096xbf16>) -> tensor<256x4096xbf16>
    %1 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<bf16>, %arg3: tensor<bf16>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<bf16>
      stablehlo.return %2 : tensor<bf16>
    }) : (tensor<256x4096xbf16>) -> tensor<256x4096xbf16>
    return %arg1, %1 : tensor<256x4096xbf16>, tensor<256x4096xbf16>
  }
  func.func private @shmap_body_2(%arg0: tensor<256x4096xbf16>, %arg1: tensor<256x4096xbf16>, %arg2: tensor<256x256xbf16>) -> (tensor<256x256xbf16> {jax.result_info = "[('data',), ('tensor',)]"}, tensor<256x4096xbf16> {jax.result_info = "[('tensor',), None]"}) {
    %0 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<256x4096xbf16>, tensor<256x256xbf16>) -> tensor<4096x256xbf16>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4096x256xbf16>) -> tensor<256x4096xbf16>
    %2 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<256x4096xbf16>, tensor<256x4096xbf16>) -> tensor<256x256xbf16>
    %3 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg3: tensor<bf16>, %arg4: tensor<bf16>):
      %4 = stablehlo.add %arg3, %arg4 : tensor<bf16>
      stablehlo.return %4 : tensor<bf16>
    }) : (tensor<256x4096xbf16>) -> tensor<256x4096xbf16>
    return %2, %3 : tensor<256x256xbf16>, tensor<256x4096xbf16>
  }
  func.func private @dynamic_index_in_dim_3(%arg0: tensor<4x512x1024xbf16>, %arg1: tensor<i32>) -> tensor<512x1024xbf16> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 512, 1024] : (tensor<4x512x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x512x1024xbf16>
    %1 = stablehlo.reshape %0 : (tensor<1x512x1024xbf16>) -> tensor<512x1024xbf16>
    return %1 : tensor<512x1024xbf16>
  }
  func.func private @dynamic_index_in_dim_4(%arg0: tensor<4x512x4096xbf16>, %arg1: tensor<i32>) -> tensor<512x4096xbf16> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 512, 4096] : (tensor<4x512x4096xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x512x4096xbf16>
    %1 = stablehlo.reshape %0 : (tensor<1x512x4096xbf16>) -> tensor<512x4096xbf16>
    return %1 : tensor<512x4096xbf16>
  }
  func.func private @closed_call_5(%arg0: tensor<512x1024xbf16>, %arg1: tensor<1024x4096xbf16>, %arg2: tensor<512x1024xbf16>, %arg3: tensor<512x4096xbf16>, %arg4: tensor<512x4096xbf16>, %arg5: tensor<512x4096xbf16>, %arg6: tensor<512x4096xbf16>, %arg7: tensor<512x4096xbf16>, %arg8: tensor<4096x1024xbf16>, %arg9: tensor<512x4096xbf16>) -> (tensor<512x1024xbf16>, tensor<1024x4096xbf16>, tensor<4096x1024xbf16>) {
    %0 = stablehlo.custom_call @Sharding(%arg0) {backend_config = "", mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<512x1024xbf16>) -> tensor<512x1024xbf16>
    %1 = stablehlo.dot_general %0, %arg9, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<512x1024xbf16>, tensor<512x4096xbf16>) -> tensor<1024x4096xbf16>
    %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<1024x4096xbf16>) -> tensor<4096x1024xbf16>
    %3 = stablehlo.dot_general %0, %arg8, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<512x1024xbf16>, tensor<4096x1024xbf16>) -> tensor<512x4096xbf16>
    %4 = stablehlo.multiply %arg7, %3 : tensor<512x4096xbf16>
    %5 = stablehlo.multiply %3, %arg6 : tensor<512x4096xbf16>
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<bf16>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<512x4096xbf16>
    %7 = stablehlo.multiply %6, %4 : tensor<512x4096xbf16>
    %8 = stablehlo.multiply %7, %arg5 : tensor<512x4096xbf16>
    %9 = stablehlo.multiply %8, %arg4 : tensor<512x4096xbf16>
    %10 = stablehlo.add %8, %9 : tensor<512x4096xbf16>
    %cst_0 = stablehlo.constant dense<7.968750e-01> : tensor<bf16>
    %11 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<512x4096xbf16>
    %12 = stablehlo.multiply %11, %10 : tensor<512x4096xbf16>
    %13 = stablehlo.add %5, %12 : tensor<512x4096xbf16>
    %cst_1 = stablehlo.constant dense<4.467770e-02> : tensor<bf16>
    %14 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<512x4096xbf16>
    %15 = stablehlo.multiply %14, %12 : tensor<512x4096xbf16>
    %16 = stablehlo.multiply %15, %arg3 : tensor<512x4096xbf16>
    %17 = stablehlo.add %13, %16 : tensor<512x4096xbf16>
    %18 = stablehlo.dot_general %17, %arg2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<512x4096xbf16>, tensor<512x1024xbf16>) -> tensor<4096x1024xbf16>
    %19 = stablehlo.transpose %18, dims = [1, 0] : (tensor<4096x1024xbf16>) -> tensor<1024x4096xbf16>
    %20 = stablehlo.dot_general %17, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<512x4096xbf16>, tensor<1024x4096xbf16>) -> tensor<512x1024xbf16>
    %21 = stablehlo.add %arg0, %20 : tensor<512x1024xbf16>
    return %21, %19, %2 : tensor<512x1024xbf16>, tensor<1024x4096xbf16>, tensor<4096x1024xbf16>
  }
  func.func private @dynamic_update_index_in_dim_6(%arg0: tensor<4x1024x4096xbf16>, %arg1: tensor<1024x4096xbf16>, %arg2: tensor<i32>) -> tensor<4x1024x4096xbf16> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<1024x4096xbf16>) -> tensor<1x1024x4096xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<4x1024x4096xbf16>, tensor<1x1024x4096xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x1024x4096xbf16>
    return %1 : tensor<4x1024x4096xbf16>
  }
  func.func private @dynamic_update_index_in_dim_7(%arg0: tensor<4x4096x1024xbf16>, %arg1: tensor<4096x1024xbf16>, %arg2: tensor<i32>) -> tensor<4x4096x1024xbf16> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<4096x1024xbf16>) -> tensor<1x4096x1024xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<4x4096x1024xbf16>, tensor<1x4096x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x4096x1024xbf16>
    return %1 : tensor<4x4096x1024xbf16>
  }
}

