/* Chains as XLA's partitioner has them on eight devices, X=2,Y=4: text, sizes, FLOPs of the
 * products on a chip, bytes that a chip sends. From scripts/chains-against-xla.py --seed 20261123
 * --cases 40
 * --rows, with JAX 0.10.2 on CPU. */
#pragma once

static const struct {
    const char *text, *dims;
    double flops, sent;
} xla_chains[] = {
    {"fp32 P[B,I,J] fp32 Q[J_Y,K] fp32 R[B_XY,I,K] -> fp32 Y[J_X,K_Y]", "B=4096,I=256,J=256,K=64",
     8589934592, 234893312},
    {"fp32 P[B,I,J_Y] fp32 Q[J_XY,K] fp32 R[B_Y,I,K_X] -> fp32 Y[J,K_X]", "B=64,I=64,J=1024,K=1024",
     1073741824, 11534336},
    {"fp32 P[B,I,J_X] fp32 Q[J,K_X] fp32 R[K_X,L] -> fp32 Y[B,I,L_XY]",
     "B=4096,I=64,J=1024,K=4096,L=4096", 292057776128, 553648128},
    {"t[B,F]:fp32 = p[B,D]:fp32 q[D_X,F_Y]:fp32; y[B,D_X]:fp32 = t[B,F]:fp32 r[F_X,D_Y]:fp32",
     "B=1024,D=4096,F=4096", 21474836480, 50331648},
    {"fp32 P[I,J] fp32 Q[J,K] fp32 R[K_X,L_Y] fp32 S[L_Y,M] -> fp32 Y[I_X,M_Y]",
     "I=1024,J=256,K=256,L=4096,M=4096", 1409286144, 3670016},
    {"fp32 P[B,I,J_XY] fp32 Q[J,K_Y] fp32 R[B,I_Y,K] -> fp32 Y[J,K_Y]", "B=4096,I=256,J=1024,K=256",
     68719476736, 805535744},
    {"t[B,F]:fp32 = p[B_Y,D_X]:fp32 q[D_XY,F]:fp32; y[B_X,E_Y]:fp32 = t[B,F]:fp32 r[F_X,E_Y]:fp32",
     "B=64,D=4096,E=256,F=64", 4456448, 1071104},
    {"t[B,F]:fp32 = p[B,D_XY]:fp32 q[D,F_Y]:fp32; y[B,E_XY]:fp32 = t[B,F]:fp32 r[F_Y,E_X]:fp32",
     "B=4096,D=256,E=256,F=4096", 3221225472, 6815744},
    {"fp32 P[B_XY,I,J] fp32 Q[J,K_Y] fp32 R[K,L] -> fp32 Y[B_X,I,L_Y]",
     "B=1024,I=4096,J=256,K=1024,L=4096", 1100048498688, 1611399168},
    {"t[A,B,F]:fp32 = p[A_X,B_Y,D]:fp32 q[D_Y,F]:fp32; y[A_Y,B,D_X]:fp32 = t[A,B,F]:fp32 "
     "r[F_X,D]:fp32",
     "A=256,B=1024,D=4096,F=1024", 549755813888, 352321536},
    {"fp32 P[I_Y,J] fp32 Q[J,K_XY] fp32 R[K_Y,L] -> fp32 Y[I,L_Y]", "I=1024,J=256,K=4096,L=64",
     41943040, 4653056},
    {"t[A,B,F]:fp32 = p[A,B_X,D]:fp32 q[D_Y,F]:fp32; y[A,B_Y,D_X]:fp32 = t[A,B,F]:fp32 "
     "r[F,D_Y]:fp32",
     "A=4096,B=256,D=256,F=1024", 343597383680, 1075052544},
    {"fp32 P[I,J_Y] fp32 Q[I,K] fp32 R[K,L_Y] -> fp32 Y[J,L_Y]", "I=1024,J=1024,K=256,L=1024",
     268435456, 786432},
    {"t[A,B,F]:fp32 = p[A_Y,B_X,D]:fp32 q[D_XY,F]:fp32; y[A_Y,B,D]:fp32 = t[A,B,F]:fp32 "
     "r[F,D]:fp32",
     "A=256,B=4096,D=64,F=256", 8589934592, 33611776},
    {"t[B,F]:fp32 = p[B_X,D]:fp32 q[D_Y,F]:fp32; y[B,E_X]:fp32 = t[B,F]:fp32 r[F_X,E_Y]:fp32",
     "B=256,D=4096,E=1024,F=256", 134217728, 851968},
    {"t[A,B,F]:fp32 = p[A,B_Y,D]:fp32 q[D_X,F]:fp32; y[A,B_Y,D]:fp32 = t[A,B,F]:fp32 r[F,D_Y]:fp32",
     "A=1024,B=64,D=64,F=256", 1073741824, 81920},
    {"t[A,B,F]:fp32 = p[A_Y,B,D]:fp32 q[D_Y,F]:fp32; y[A_X,B,D]:fp32 = t[A,B,F]:fp32 r[F,D_X]:fp32",
     "A=256,B=4096,D=4096,F=64", 412316860416, 135528448},
    {"t[B,T,S]:fp32 = p[B,H,T_Y]:fp32 q[B,H,S_Y]:fp32; y[B_Y,T_X,H]:fp32 = t[B,T,S]:fp32 "
     "r[B_Y,H,S]:fp32",
     "B=1024,H=256,S=1024,T=1024", 206158430208, 1610612736},
    {"t[B,T,S]:fp32 = p[B_X,H,T]:fp32 q[B_Y,H,S]:fp32; y[B_Y,T,H_X]:fp32 = t[B,T,S]:fp32 "
     "r[B_XY,H,S]:fp32",
     "B=1024,H=1024,S=64,T=64", 9663676416, 385875968},
    {"fp32 P[I,J_X] fp32 Q[K,J_XY] fp32 R[L_X,K] -> fp32 Y[L_Y,I_X]", "I=256,J=1024,K=1024,L=1024",
     335544320, 4980736},
    {"fp32 P[B_X,I,J_Y] fp32 Q[J_Y,K] fp32 R[K,L_Y] -> fp32 Y[B,I_Y,L_X]",
     "B=64,I=64,J=256,K=1024,L=256", 100663296, 2228224},
    {"fp32 P[I_Y,J_X] fp32 Q[J_Y,K] fp32 R[K_XY,L] -> fp32 Y[I_X,L_Y]", "I=64,J=1024,K=4096,L=4096",
     335544320, 71860224},
    {"t[B,T,S]:fp32 = p[B,H,T_Y]:fp32 q[B,H,S_XY]:fp32; y[B_X,T_Y,H]:fp32 = t[B,T,S]:fp32 "
     "r[B,H_X,S_Y]:fp32",
     "B=256,H=256,S=4096,T=64", 8589934592, 918552576},
    {"fp32 P[I,J] fp32 Q[I,K_X] fp32 R[K,L_X] -> fp32 Y[J,L_X]", "I=1024,J=64,K=256,L=256",
     17825792, 65536},
    {"t[B,F]:fp32 = p[B_X,D_Y]:fp32 q[D,F]:fp32; y[B_Y,D]:fp32 = t[B,F]:fp32 r[F,D_Y]:fp32",
     "B=256,D=64,F=256", 6291456, 139264},
    {"t[B,F]:fp32 = p[B_X,D]:fp32 q[D_Y,F_X]:fp32; y[B,E_X]:fp32 = t[B,F]:fp32 r[F_X,E_Y]:fp32",
     "B=4096,D=256,E=64,F=4096", 5368709120, 37748736},
    {"t[A,B,F]:fp32 = p[A,B_XY,D]:fp32 q[D,F_XY]:fp32; y[A_XY,B,D]:fp32 = t[A,B,F]:fp32 "
     "r[F,D_X]:fp32",
     "A=4096,B=1024,D=256,F=4096", 2199023255552, 7521959936},
    {"fp32 P[I_Y,J_X] fp32 Q[J_XY,K] fp32 R[K,L_X] -> fp32 Y[I,L]", "I=64,J=1024,K=1024,L=256",
     20971520, 1695744},
    {"t[B,F]:fp32 = p[B,D_X]:fp32 q[D_X,F_Y]:fp32; y[B_Y,E_X]:fp32 = t[B,F]:fp32 r[F_X,E]:fp32",
     "B=256,D=256,E=256,F=256", 8388608, 180224},
    {"t[B,F]:fp32 = p[B_X,D_Y]:fp32 q[D_Y,F_X]:fp32; y[B,D_Y]:fp32 = t[B,F]:fp32 r[F,D_XY]:fp32",
     "B=256,D=4096,F=64", 33554432, 966656},
    {"t[B,T,S]:fp32 = p[B_X,H,T]:fp32 q[B,H,S_Y]:fp32; y[B_X,T,H]:fp32 = t[B,T,S]:fp32 "
     "r[B,H,S]:fp32",
     "B=64,H=256,S=4096,T=64", 2147483648, 3145728},
    {"t[A,B,F]:fp32 = p[A_X,B,D_Y]:fp32 q[D_Y,F]:fp32; y[A,B_Y,D_X]:fp32 = t[A,B,F]:fp32 "
     "r[F_Y,D_X]:fp32",
     "A=4096,B=256,D=4096,F=64", 137438953472, 235274240},
    {"t[B,F]:fp32 = p[B,D]:fp32 q[D_X,F]:fp32; y[B_X,E]:fp32 = t[B,F]:fp32 r[F,E]:fp32",
     "B=64,D=256,E=64,F=1024", 20971520, 524288},
    {"fp32 P[I_X,J_Y] fp32 Q[I_X,K_Y] fp32 R[K_X,L] -> fp32 Y[J_Y,L]", "I=64,J=4096,K=64,L=1024",
     68157440, 4456448},
    {"fp32 P[I,J_X] fp32 Q[J,K] fp32 R[K,L_XY] -> fp32 Y[I_X,L_Y]", "I=64,J=4096,K=1024,L=4096",
     335544320, 4456448},
    {"t[B,F]:fp32 = p[B_Y,D_X]:fp32 q[D_X,F]:fp32; y[B,E_XY]:fp32 = t[B,F]:fp32 r[F_XY,E]:fp32",
     "B=64,D=1024,E=64,F=4096", 71303168, 1294336},
    {"fp32 P[I,J_Y] fp32 Q[I_XY,K] fp32 R[K_Y,L_X] -> fp32 Y[J,L_Y]", "I=64,J=1024,K=1024,L=1024",
     50331648, 688128},
    {"fp32 P[I,J_X] fp32 Q[J_X,K] fp32 R[K_X,L] fp32 S[L_X,M] -> fp32 Y[I,M_X]",
     "I=64,J=1024,K=256,L=64,M=64", 9043968, 98304},
    {"fp32 P[B,I_Y,J] fp32 Q[J_X,K] fp32 R[K,L_X] -> fp32 Y[B,I_X,L_Y]",
     "B=64,I=1024,J=4096,K=4096,L=256", 18253611008, 806879232},
    {"t[A,B,F]:fp32 = p[A,B_XY,D]:fp32 q[D_X,F]:fp32; y[A_X,B_Y,D]:fp32 = t[A,B,F]:fp32 "
     "r[F_XY,D]:fp32",
     "A=256,B=64,D=256,F=64", 134217728, 876544},
};
