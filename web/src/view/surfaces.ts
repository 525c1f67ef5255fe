// Materials and light: what surfaces, ground and sky are drawn with.
//
// These are the materials of a machine with graphics; what draws in software gets those of plain.ts.
import {
  BackSide,
  DirectionalLight,
  DoubleSide,
  FrontSide,
  Group,
  HemisphereLight,
  Mesh,
  MeshDepthMaterial,
  MeshStandardMaterial,
  RGBADepthPacking,
  ShaderMaterial,
  SphereGeometry,
  Vector3,
  Vector4,
  type Box3,
  type DataTexture,
  type Material,
  type Texture,
} from 'three'
import { REGION_FUNCTION, type RegionUniforms } from './regions'

export const SKY = { top: 0x0f1621, horizon: 0x52606d, below: 0x2b3138 }
export const SUN: [number, number, number] = [-0.52, -0.42, 0.86] // where it stands
export const ACCENT = 0x62b6ff

// Shared by all ground materials: how strongly the lines of the grid show, 0 to 1.
export const gridStrength = { value: 0 }

// Where ground is left out, because something finer is drawn there: squares of its own x and y in which the mask is not 0, but for a rim, so that
// both are there where they meet.
export interface Cut {
  uniforms: {
    uCut: { value: DataTexture | null } // null: nowhere
    uCutAt: { value: Vector4 } // its corner, and one over its size
    uCutRim: { value: number } // m
  }
  version: number // another one when the mask has changed
}
export function makeCut(): Cut {
  return { uniforms: { uCut: { value: null }, uCutAt: { value: new Vector4() }, uCutRim: { value: 0 } }, version: 0 }
}

// How much of a rectangle of ground is left out.
export function cutShare(cut: Cut, box: Box3): 'none' | 'part' | 'all' {
  const mask = cut.uniforms.uCut.value
  if (!mask) return 'none'
  const { width, height } = mask.image
  const data = mask.image.data as Uint8Array
  const rim = cut.uniforms.uCutRim.value
  const at = cut.uniforms.uCutAt.value
  const x = (m: number): number => Math.floor((m - at.x) * at.z * width)
  const y = (m: number): number => Math.floor((m - at.y) * at.w * height)
  let isAny = false
  let isAll = true
  for (let j = y(box.min.y - rim), j1 = y(box.max.y + rim); j <= j1; j++)
    for (let i = x(box.min.x - rim), i1 = x(box.max.x + rim); i <= i1; i++) {
      if (i >= 0 && j >= 0 && i < width && j < height && data[j * width + i]) isAny = true
      else isAll = false
      if (isAny && !isAll) return 'part'
    }
  return isAny ? 'all' : 'none'
}

export const CUT_FUNCTION = `
  uniform sampler2D uCut;
  uniform vec4 uCutAt;
  uniform float uCutRim;
  bool isIn(vec2 m) { return m.x > 0.0 && m.y > 0.0 && m.x < 1.0 && m.y < 1.0 && texture2D(uCut, m).r > 0.5; }
  bool isCut(vec2 at) {
    return isIn((at - uCutAt.xy) * uCutAt.zw) && isIn((at + uCutRim - uCutAt.xy) * uCutAt.zw) && isIn((at - uCutRim - uCutAt.xy) * uCutAt.zw);
  }`

export interface SurfaceOptions {
  color?: number
  opacity?: number
  vertexColors?: boolean
  isDoubleSided?: boolean
  photo?: Texture | null
  regions?: RegionUniforms | undefined // where it is tinted by what it is made of
  cut?: Cut // what leaves out pixels is slower to draw: only ground that lies below something finer does
}

export function surface(options: SurfaceOptions): MeshStandardMaterial {
  const opacity = options.opacity ?? 1
  return new MeshStandardMaterial({
    roughness: 0.78,
    metalness: 0.04,
    color: options.color ?? 0xffffff,
    vertexColors: options.vertexColors ?? false,
    map: options.photo ?? null,
    transparent: opacity < 1,
    opacity,
    depthWrite: opacity >= 1,
    side: options.isDoubleSided ? DoubleSide : FrontSide,
  })
}

// A surface with lines every metre and stronger ones every ten, in the world's x and y. They thin out where they would be closer than pixels.
export function groundSurface(options: SurfaceOptions): Material {
  const material = surface(options)
  material.roughness = 0.95
  material.metalness = 0
  if (options.cut) material.defines = { ...material.defines, CUT: '' }
  if (options.regions) material.defines = { ...material.defines, REGIONS: '' }
  material.onBeforeCompile = (shader) => {
    shader.uniforms.uGrid = gridStrength
    Object.assign(shader.uniforms, options.cut?.uniforms, options.regions)
    shader.vertexShader = shader.vertexShader
      .replace('#include <common>', '#include <common>\nvarying vec2 vGround, vHere;')
      .replace('#include <begin_vertex>', '#include <begin_vertex>\nvGround = (modelMatrix * vec4(transformed, 1.0)).xy;\nvHere = position.xy;')
    shader.fragmentShader = shader.fragmentShader
      .replace(
        '#include <common>',
        `#include <common>
         varying vec2 vGround, vHere;
         uniform float uGrid;
         ${GRID_FUNCTION}${GRAIN_FUNCTION}
         #ifdef CUT
           ${CUT_FUNCTION}
         #endif
         #ifdef REGIONS
           ${REGION_FUNCTION}
         #endif`,
      )
      .replace('#include <clipping_planes_fragment>', '#include <clipping_planes_fragment>\n#ifdef CUT\nif (isCut(vHere)) discard;\n#endif')
      .replace(
        '#include <color_fragment>',
        `#include <color_fragment>
         diffuseColor.rgb *= 1.0 + ${(options.photo ? 0.05 : 0.16).toFixed(2)} * grain(vGround);
         #ifdef REGIONS
           diffuseColor.rgb = regionTint(diffuseColor.rgb, vHere, 1.0);
         #endif
         if (uGrid > 0.0) {
           float lines = 0.10 * gridLines(vGround, 1.0) + 0.16 * gridLines(vGround, 10.0);
           diffuseColor.rgb = mix(diffuseColor.rgb, vec3(0.85, 0.93, 1.0), uGrid * lines);
         }`,
      )
  }
  return material
}

// For shadows: what is cut out throws none.
export function groundDepth(cut: Cut): Material {
  const material = new MeshDepthMaterial({ depthPacking: RGBADepthPacking })
  material.onBeforeCompile = (shader) => {
    Object.assign(shader.uniforms, cut.uniforms)
    shader.vertexShader = shader.vertexShader
      .replace('#include <common>', '#include <common>\nvarying vec2 vHere;')
      .replace('#include <begin_vertex>', '#include <begin_vertex>\nvHere = position.xy;')
    shader.fragmentShader = shader.fragmentShader
      .replace('#include <common>', `#include <common>\nvarying vec2 vHere;\n${CUT_FUNCTION}`)
      .replace('#include <clipping_planes_fragment>', '#include <clipping_planes_fragment>\nif (isCut(vHere)) discard;')
  }
  return material
}

// Sand and small stones that no height tells of: lumps of half a metre, of a hand and of a finger, each only where a pixel can show it.
const GRAIN_FUNCTION = `
  float hashed(vec2 p) { return fract(sin(dot(mod(p, 4096.0), vec2(127.1, 311.7))) * 43758.5453); }
  float lumps(vec2 p) {
    vec2 i = floor(p), f = smoothstep(0.0, 1.0, fract(p));
    return mix(mix(hashed(i), hashed(i + vec2(1, 0)), f.x), mix(hashed(i + vec2(0, 1)), hashed(i + 1.0), f.x), f.y) - 0.5;
  }
  float grain(vec2 at) {
    float width = max(length(fwidth(at)), 1e-6), sum = 0.0;
    for (int i = 0; i < 3; i++) {
      float size = i == 0 ? 0.37 : i == 1 ? 0.083 : 0.019;
      sum += lumps(at / size) * clamp(size / width - 1.0, 0.0, 1.0);
    }
    return sum;
  }`

export const GRID_FUNCTION = `
  float gridLines(vec2 at, float spacing) {
    vec2 p = at / spacing;
    vec2 width = max(fwidth(p), vec2(1e-6));
    vec2 near = abs(fract(p - 0.5) - 0.5) / width;
    float line = 1.0 - min(min(near.x, near.y), 1.0);
    return line * clamp(1.0 - 4.0 * max(width.x, width.y), 0.0, 1.0);
  }`

// The colours of the sky as they are on the screen, where the haze is mixed in too.
export function skyUniforms(): Record<string, { value: Vector3 }> {
  const onScreen = (hex: number): { value: Vector3 } => ({ value: new Vector3(hex >> 16, (hex >> 8) & 255, hex & 255).divideScalar(255) })
  return { top: onScreen(SKY.top), horizon: onScreen(SKY.horizon), below: onScreen(SKY.below) }
}

export const SKY_FUNCTION = `
  uniform vec3 top, horizon, below;
  vec3 skyColor(float up) {
    return up > 0.0 ? mix(horizon, top, pow(min(up, 1.0), 0.6)) : mix(horizon, below, pow(min(-up, 1.0), 0.5));
  }`

// A sphere around the camera, calm and dark above, lighter at the horizon. It stands behind everything and is drawn last: only where it is seen.
export function makeSky(): Mesh {
  const material = new ShaderMaterial({
    side: BackSide,
    depthWrite: false,
    toneMapped: false,
    uniforms: skyUniforms(),
    vertexShader: `
      varying float vUp;
      void main() {
        vUp = normalize(position).z;
        gl_Position = projectionMatrix * mat4(mat3(modelViewMatrix)) * vec4(position, 1.0);
        gl_Position.z = gl_Position.w;
      }`,
    // A grain of half a step of 8 bits keeps the slow gradient from showing bands.
    fragmentShader: `
      ${SKY_FUNCTION}
      varying float vUp;
      void main() {
        float grain = fract(sin(dot(gl_FragCoord.xy, vec2(12.9898, 78.233))) * 43758.5453) - 0.5;
        gl_FragColor = vec4(skyColor(vUp) + grain / 255.0, 1.0);
      }`,
  })
  return new Mesh(new SphereGeometry(1, 24, 24), material)
}

// Light from above all round, and a sun from the side whose shadows follow what is looked at.
export class Light {
  readonly root = new Group()
  readonly sun = new DirectionalLight(0xfff4e6, 3.1)
  private reach = 0
  private readonly right = new Vector3()
  private readonly up = new Vector3()
  private readonly away = new Vector3(...SUN).normalize()

  constructor() {
    const sky = new HemisphereLight(0xc9d6e6, 0x7a7066, 2.7)
    sky.position.set(0, 0, 1)
    const fill = new DirectionalLight(0x9fb8d8, 0.45)
    fill.position.set(0.7, 0.6, 0.35)
    this.sun.position.copy(this.away)
    this.sun.shadow.bias = -0.0004
    this.sun.shadow.radius = 3
    this.root.add(sky, this.sun, this.sun.target, fill)
    this.right.crossVectors(new Vector3(0, 0, 1), this.away).normalize()
    this.up.crossVectors(this.away, this.right)
  }

  // Shadows around `center`, `distance` from the eye. Steps of whole texels and of factors of two keep edges from swimming.
  aim(center: Vector3, distance: number): void {
    const sun = this.sun
    const reach = 2 ** Math.ceil(Math.log2(Math.min(Math.max(distance * 1.1, 3), 200)))
    const camera = sun.shadow.camera
    if (reach !== this.reach) {
      this.reach = reach
      camera.left = camera.bottom = -reach
      camera.right = camera.top = reach
      camera.near = 0.1
      camera.far = reach * 6
      camera.updateProjectionMatrix()
    }
    const texel = (2 * reach) / sun.shadow.mapSize.x
    sun.shadow.normalBias = 1.5 * texel // as far as one texel may lie off the surface it stands for
    const a = Math.round(center.dot(this.right) / texel) * texel
    const b = Math.round(center.dot(this.up) / texel) * texel
    const c = center.dot(this.away)
    sun.target.position.copy(this.right).multiplyScalar(a).addScaledVector(this.up, b).addScaledVector(this.away, c)
    sun.position.copy(sun.target.position).addScaledVector(this.away, reach * 3)
  }
}
