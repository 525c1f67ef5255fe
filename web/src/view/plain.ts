// Materials for WebGL in software, where every pixel costs: light, haze and colour are worked out at the corners of triangles alone.
import { BackSide, Color, DoubleSide, FrontSide, Matrix3, Mesh, ShaderMaterial, SphereGeometry, UniformsLib } from 'three'
import { UniformsUtils, Vector3, type Matrix4 } from 'three'
import type { Bake } from './field'
import { REGION_FUNCTION } from './regions'
import { CUT_FUNCTION, GRID_FUNCTION, SKY_FUNCTION, SUN, gridStrength, skyUniforms, type SurfaceOptions } from './surfaces'

type Rgb = [number, number, number]
const LIGHT: Record<'below' | 'above' | 'sun', Rgb> = { below: [0.3, 0.28, 0.26], above: [0.58, 0.62, 0.68], sun: [0.98, 0.93, 0.86] }
const EXPOSURE = 1.25
const glsl = (rgb: Rgb): string => `vec3(${rgb.map((x) => x.toFixed(3)).join(', ')})`

const VERTEX = `
  #include <batching_pars_vertex>
  uniform vec3 uColor, uSun;
  uniform float fogNear, fogFar;
  uniform vec3 fogColor;
  varying vec3 vColor;
  #ifdef GROUND
    varying vec2 vGround;
  #endif
  #if defined(CUT) || defined(REGIONS)
    varying vec2 vHere;
  #endif
  #if defined(PHOTO) || defined(REGIONS)
    varying float vHaze;
  #endif
  #ifdef PHOTO
    varying vec2 vUv;
  #endif
  vec3 onScreen(vec3 c) { return pow(1.0 - exp(-${EXPOSURE} * c), vec3(1.0 / 2.2)); }
  void main() {
    vec4 at = vec4(position, 1.0);
    #ifdef BAKED
      vec3 shown = color;
    #else
    vec3 n = normal;
    #ifdef USE_BATCHING
      float which = getIndirectIndex(gl_DrawID);
      mat4 own = getBatchingMatrix(which);
    #endif
    #ifdef USE_INSTANCING
      mat4 own = instanceMatrix;
    #endif
    #if defined(USE_INSTANCING) || defined(USE_BATCHING)
      // Normals of what is scaled unevenly go by the inverse of the scale.
      mat3 m = mat3(own);
      n = m * (n / vec3(dot(m[0], m[0]), dot(m[1], m[1]), dot(m[2], m[2])));
      at = own * at;
    #endif
    n = normalize(mat3(modelMatrix) * n);
    vec3 base = uColor;
    #ifdef USE_INSTANCING_COLOR
      base *= instanceColor;
    #endif
    #ifdef USE_BATCHING_COLOR
      base *= getBatchingColor(which).rgb;
    #endif
    #ifdef USE_COLOR
      base *= color;
    #endif
    vec3 light = mix(${glsl(LIGHT.below)}, ${glsl(LIGHT.above)}, 0.5 + 0.5 * n.z);
    vec3 lit = base * (light + ${glsl(LIGHT.sun)} * max(dot(n, uSun), 0.0));
    vec3 shown = onScreen(lit);
    #endif
    at = modelMatrix * at;
    #ifdef GROUND
      vGround = at.xy;
    #endif
    #if defined(CUT) || defined(REGIONS)
      vHere = position.xy;
    #endif
    at = viewMatrix * at;
    float haze = smoothstep(fogNear, fogFar, -at.z);
    #if defined(PHOTO) || defined(REGIONS)
      vHaze = haze;
    #endif
    #ifdef PHOTO
      vUv = uv;
      vColor = shown;
    #else
      vColor = mix(shown, fogColor, haze); // the haze's colour is that of the screen
    #endif
    gl_Position = projectionMatrix * at;
  }`

const FRAGMENT = `
  uniform float uOpacity;
  varying vec3 vColor;
  #ifdef GROUND
    uniform float uGrid;
    varying vec2 vGround;
    ${GRID_FUNCTION}
  #endif
  #if defined(CUT) || defined(REGIONS)
    varying vec2 vHere;
  #endif
  #ifdef CUT
    ${CUT_FUNCTION}
  #endif
  #if defined(PHOTO) || defined(REGIONS)
    varying float vHaze;
  #endif
  #ifdef REGIONS
    ${REGION_FUNCTION}
  #endif
  #ifdef PHOTO
    uniform sampler2D uPhoto;
    uniform vec3 fogColor;
    varying vec2 vUv;
  #endif
  void main() {
    vec3 c = vColor;
    #ifdef CUT
      if (isCut(vHere)) discard;
    #endif
    #ifdef PHOTO
      c = mix(c * pow(texture2D(uPhoto, vUv).rgb, vec3(1.0 / 2.2)), fogColor, vHaze); // a photograph comes as light
    #endif
    #ifdef REGIONS
      c = regionTint(c, vHere, 0.4 * (1.0 - vHaze)); // on colours of the screen, which show more of it than light does
    #endif
    #ifdef GROUND
      if (uGrid > 0.0) c = mix(c, vec3(0.93, 0.97, 1.0), uGrid * (0.14 * gridLines(vGround, 1.0) + 0.18 * gridLines(vGround, 10.0)));
    #endif
    gl_FragColor = vec4(c, uOpacity);
  }`

// How light comes out on the screen, in 8 bits, for light from 0 to MOST.
const MOST = 4
const SCREEN = Uint8Array.from({ length: 4097 }, (_, i) => Math.round(255 * (1 - Math.exp(-EXPOSURE * (i / 4096) * MOST)) ** (1 / 2.2)))

// Works out once what the shader would for every frame, for ground that stands still. X: where it stands.
export function baker(X: Matrix4): Bake {
  const sun = new Vector3(...SUN).normalize()
  // The sun and what is up, as the ground's own frame has them.
  const turn = new Matrix3().setFromMatrix4(X).transpose()
  sun.applyMatrix3(turn).normalize()
  const top = new Vector3(0, 0, 1).applyMatrix3(turn).normalize()
  const { below, above, sun: warm } = LIGHT
  const shown = (light: number): number => SCREEN[Math.min(Math.max((light * 4096) / MOST, 0), 4096) | 0] as number
  return (to, k, r, g, b, nx, ny, nz) => {
    const up = 0.5 + 0.5 * (nx * top.x + ny * top.y + nz * top.z)
    const lit = Math.max(nx * sun.x + ny * sun.y + nz * sun.z, 0)
    to[3 * k] = shown(r * (below[0] * (1 - up) + above[0] * up + warm[0] * lit))
    to[3 * k + 1] = shown(g * (below[1] * (1 - up) + above[1] * up + warm[1] * lit))
    to[3 * k + 2] = shown(b * (below[2] * (1 - up) + above[2] * up + warm[2] * lit))
  }
}

// Ground has lines of the grid on it; `isBaked` when its geometry is.
export function plainSurface(options: SurfaceOptions, isGround = false, isBaked = false): ShaderMaterial {
  const opacity = options.opacity ?? 1
  const material = new ShaderMaterial({
    vertexShader: VERTEX,
    fragmentShader: FRAGMENT,
    fog: true,
    vertexColors: options.vertexColors ?? false,
    transparent: opacity < 1,
    depthWrite: opacity >= 1,
    side: options.isDoubleSided ? DoubleSide : FrontSide,
    defines: {
      ...(isGround && { GROUND: '' }),
      ...(isBaked && { BAKED: '' }),
      ...(options.photo && { PHOTO: '' }),
      ...(options.cut && { CUT: '' }),
      ...(options.regions && { REGIONS: '' }),
    },
    uniforms: {
      ...UniformsUtils.clone(UniformsLib.fog),
      uColor: { value: new Color(options.color ?? 0xffffff) },
      uSun: { value: new Vector3(...SUN).normalize() },
      uOpacity: { value: opacity },
    },
  })
  // Shared, not copies.
  Object.assign(material.uniforms, { uGrid: gridStrength }, options.cut?.uniforms, options.regions, options.photo && { uPhoto: { value: options.photo } })
  return material
}

export function plainSky(): Mesh {
  const material = new ShaderMaterial({
    side: BackSide,
    depthWrite: false,
    uniforms: skyUniforms(),
    vertexShader: `
      ${SKY_FUNCTION}
      varying vec3 vColor;
      void main() {
        vColor = skyColor(normalize(position).z);
        gl_Position = projectionMatrix * mat4(mat3(modelViewMatrix)) * vec4(position, 1.0);
        gl_Position.z = gl_Position.w;
      }`,
    fragmentShader: 'varying vec3 vColor; void main() { gl_FragColor = vec4(vColor, 1.0); }',
  })
  return new Mesh(new SphereGeometry(1, 16, 40).rotateX(Math.PI / 2), material)
}
