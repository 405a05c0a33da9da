// Every texture and surface function of CUDA C++, as NVRTC compiles them.
using T = cudaTextureObject_t;
using S = cudaSurfaceObject_t;

extern "C" __global__ void line(T t, float4* out, float x, float l) {
  out[0] = tex1D<float4>(t, x);
  out[1] = tex1DLod<float4>(t, x, l);
  out[2] = tex1DGrad<float4>(t, x, 0.f, 0.f);
}
extern "C" __global__ void lines(T t, float4* out, float x, float l, int layer) {
  out[0] = tex1DLayered<float4>(t, x, layer);
  out[1] = tex1DLayeredLod<float4>(t, x, layer, l);
  out[2] = tex1DLayeredGrad<float4>(t, x, layer, 0.f, 0.f);
}
extern "C" __global__ void plane(T t, float4* out, float x, float y, float l) {
  bool resident;
  float2 zero = make_float2(0.f, 0.f);
  out[0] = tex2D<float4>(t, x, y);
  out[1] = tex2DLod<float4>(t, x, y, l);
  out[2] = tex2DGrad<float4>(t, x, y, zero, zero);
  out[3] = tex2D<float4>(t, x, y, &resident);
  out[4] = make_float4(resident, tex2D<float>(t, x, y), tex2D<float2>(t, x, y).y, 0.f);
}
extern "C" __global__ void gathers(T t, float4* out, float x, float y) {
  out[0] = tex2Dgather<float4>(t, x, y, 0);
  out[1] = tex2Dgather<float4>(t, x, y, 1);
  out[2] = tex2Dgather<float4>(t, x, y, 2);
  out[3] = tex2Dgather<float4>(t, x, y, 3);
}
extern "C" __global__ void planes(T t, float4* out, float x, float y, float l, int layer) {
  float2 zero = make_float2(0.f, 0.f);
  out[0] = tex2DLayered<float4>(t, x, y, layer);
  out[1] = tex2DLayeredLod<float4>(t, x, y, layer, l);
  out[2] = tex2DLayeredGrad<float4>(t, x, y, layer, zero, zero);
}
extern "C" __global__ void volume(T t, float4* out, float x, float y, float z, float l) {
  float4 zero = make_float4(0.f, 0.f, 0.f, 0.f);
  out[0] = tex3D<float4>(t, x, y, z);
  out[1] = tex3DLod<float4>(t, x, y, z, l);
  out[2] = tex3DGrad<float4>(t, x, y, z, zero, zero);
}
extern "C" __global__ void cube(T t, float4* out, float x, float y, float z, float l) {
  float4 zero = make_float4(0.f, 0.f, 0.f, 0.f);
  out[0] = texCubemap<float4>(t, x, y, z);
  out[1] = texCubemapLod<float4>(t, x, y, z, l);
  out[2] = texCubemapGrad<float4>(t, x, y, z, zero, zero);
}
extern "C" __global__ void cubes(T t, float4* out, float x, float y, float z, float l, int layer) {
  float4 zero = make_float4(0.f, 0.f, 0.f, 0.f);
  out[0] = texCubemapLayered<float4>(t, x, y, z, layer);
  out[1] = texCubemapLayeredLod<float4>(t, x, y, z, layer, l);
  out[2] = texCubemapLayeredGrad<float4>(t, x, y, z, layer, zero, zero);
}

template <class V> __device__ void fetch(T t, V* out, int i) { out[0] = tex1Dfetch<V>(t, i); }
#define FETCH(name, type) \
  extern "C" __global__ void fetch_##name(T t, type* out, int i) { fetch<type>(t, out, i); }
FETCH(i1x1, signed char) FETCH(i1x2, char2) FETCH(i1x4, char4)
FETCH(u1x1, unsigned char) FETCH(u1x2, uchar2) FETCH(u1x4, uchar4)
FETCH(i2x1, short) FETCH(i2x2, short2) FETCH(i2x4, short4)
FETCH(u2x1, unsigned short) FETCH(u2x2, ushort2) FETCH(u2x4, ushort4)
FETCH(i4x1, int) FETCH(i4x2, int2) FETCH(i4x4, int4)
FETCH(u4x1, unsigned) FETCH(u4x2, uint2) FETCH(u4x4, uint4)
FETCH(f4x1, float) FETCH(f4x2, float2) FETCH(f4x4, float4)

// Moves one element from (1, …) to (0, …) of each surface.
template <class V> __device__ void move(S s, int geometry) {
  const int x = sizeof(V);
  if (geometry == 0) surf1Dwrite(surf1Dread<V>(s, x), s, 0);
  if (geometry == 1) surf2Dwrite(surf2Dread<V>(s, x, 1), s, 0, 1);
  if (geometry == 2) surf3Dwrite(surf3Dread<V>(s, x, 1, 1), s, 0, 1, 1);
  if (geometry == 3) surf1DLayeredwrite(surf1DLayeredread<V>(s, x, 1), s, 0, 1);
  if (geometry == 4) surf2DLayeredwrite(surf2DLayeredread<V>(s, x, 1, 1), s, 0, 1, 1);
  if (geometry == 5) surfCubemapwrite(surfCubemapread<V>(s, x, 1, 1), s, 0, 1, 1);
  if (geometry == 6)
    surfCubemapLayeredwrite(surfCubemapLayeredread<V>(s, x, 1, 1), s, 0, 1, 1);
}
#define MOVE(name, type) \
  extern "C" __global__ void move_##name(S s, int geometry) { move<type>(s, geometry); }
MOVE(u1x1, unsigned char) MOVE(u1x2, uchar2) MOVE(u1x4, uchar4) MOVE(u2x1, unsigned short)
MOVE(u2x2, ushort2) MOVE(u2x4, ushort4) MOVE(u4x1, unsigned) MOVE(u4x2, uint2) MOVE(u4x4, uint4)
MOVE(i1x1, signed char) MOVE(i2x2, short2) MOVE(i4x4, int4)
MOVE(f4x1, float) MOVE(f4x2, float2) MOVE(f4x4, float4)
