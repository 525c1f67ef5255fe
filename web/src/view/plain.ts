// Materials for WebGL in software, where every pixel costs: light, haze and colour are worked out at the corners of triangles alone.
import { BackSide, BufferAttribute, Color, DoubleSide, FrontSide, Matrix3, Mesh, ShaderMaterial, SphereGeometry, UniformsLib } from 'three'
import { UniformsUtils, Vector3, type BufferGeometry, type Material, type Matrix4 } from 'three'
import { CUT_FUNCTION, GRID_FUNCTION, NO_CUT, SKY_FUNCTION, SUN, gridStrength, skyUniforms, type SurfaceOptions } from './surfaces'

type Rgb = [number, number, number]
const LIGHT: Record<'below' | 'above' | 'sun', Rgb> = { below: [0.3, 0.28, 0.26], above: [0.58, 0.62, 0.68], sun: [0.98, 0.93, 0.86] }
const EXPOSURE = 1.25
const glsl = (rgb: Rgb): string => `vec3(${rgb.map((x) => x.toFixed(3)).join(', ')})`

const VERTEX = `
  uniform vec3 uColor, uSun;
  uniform float fogNear, fogFar;
  uniform vec3 fogColor;
  varying vec3 vColor;
  #ifdef GROUND
    varying vec2 vGround, vHere;
  #endif
  #ifdef PHOTO
    varying vec2 vUv;
    varying float vHaze;
  #endif
  vec3 onScreen(vec3 c) { return pow(1.0 - exp(-${EXPOSURE} * c), vec3(1.0 / 2.2)); }
  void main() {
    vec4 at = vec4(position, 1.0);
    #ifdef BAKED
      vec3 shown = color;
    #else
    vec3 n = normal;
    #ifdef USE_INSTANCING
      // Normals of what is scaled unevenly go by the inverse of the scale.
      mat3 m = mat3(instanceMatrix);
      n = m * (n / vec3(dot(m[0], m[0]), dot(m[1], m[1]), dot(m[2], m[2])));
      at = instanceMatrix * at;
    #endif
    n = normalize(mat3(modelMatrix) * n);
    vec3 base = uColor;
    #ifdef USE_INSTANCING_COLOR
      base *= instanceColor;
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
      vHere = position.xy;
    #endif
    at = viewMatrix * at;
    float haze = smoothstep(fogNear, fogFar, -at.z);
    #ifdef PHOTO
      vUv = uv;
      vHaze = haze;
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
    varying vec2 vGround, vHere;
    ${GRID_FUNCTION}
  #endif
  #ifdef CUT
    ${CUT_FUNCTION}
  #endif
  #ifdef PHOTO
    uniform sampler2D uPhoto;
    uniform vec3 fogColor;
    varying vec2 vUv;
    varying float vHaze;
  #endif
  void main() {
    vec3 c = vColor;
    #ifdef CUT
      if (isCut(vHere)) discard;
    #endif
    #ifdef PHOTO
      c = mix(c * pow(texture2D(uPhoto, vUv).rgb, vec3(1.0 / 2.2)), fogColor, vHaze); // a photograph comes as light
    #endif
    #ifdef GROUND
      if (uGrid > 0.0) c = mix(c, vec3(0.93, 0.97, 1.0), uGrid * (0.14 * gridLines(vGround, 1.0) + 0.18 * gridLines(vGround, 10.0)));
    #endif
    gl_FragColor = vec4(c, uOpacity);
  }`

// Works out once what the shader would for every frame, for ground that stands still: colours become those of the screen. X: where it stands.
export function bake(geometry: BufferGeometry, X: Matrix4): void {
  const normal = geometry.getAttribute('normal')
  const color = geometry.getAttribute('color')
  const turn = new Matrix3().setFromMatrix4(X)
  const sun = new Vector3(...SUN).normalize()
  const n = new Vector3()
  const baked = new Uint8Array(color.count * 3)
  for (let i = 0; i < color.count; i++) {
    n.fromBufferAttribute(normal, i).applyMatrix3(turn).normalize()
    const up = 0.5 + 0.5 * n.z
    const lit = Math.max(n.dot(sun), 0)
    for (let k = 0; k < 3; k++) {
      const light = (LIGHT.below[k] as number) * (1 - up) + (LIGHT.above[k] as number) * up + (LIGHT.sun[k] as number) * lit
      baked[i * 3 + k] = Math.round(255 * (1 - Math.exp(-EXPOSURE * color.getComponent(i, k) * light)) ** (1 / 2.2))
    }
  }
  geometry.setAttribute('color', new BufferAttribute(baked, 3, true))
  geometry.deleteAttribute('normal')
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
    defines: { ...(isGround && { GROUND: '' }), ...(isBaked && { BAKED: '' }), ...(options.photo && { PHOTO: '' }) },
    uniforms: {
      ...UniformsUtils.clone(UniformsLib.fog),
      uColor: { value: new Color(options.color ?? 0xffffff) },
      uSun: { value: new Vector3(...SUN).normalize() },
      uOpacity: { value: opacity },
    },
  })
  // Shared, not copies.
  Object.assign(material.uniforms, { uGrid: gridStrength }, options.cut ?? NO_CUT, options.photo && { uPhoto: { value: options.photo } })
  return material
}

// From now on it is left out where its cut says so. What leaves out pixels is slower to draw: only ground below a bed of soil does.
export function cutOut(material: Material): void {
  if (!(material instanceof ShaderMaterial) || 'CUT' in material.defines) return
  material.defines.CUT = ''
  material.needsUpdate = true
}

export function plainSky(): Mesh {
  const material = new ShaderMaterial({
    side: BackSide,
    depthWrite: false,
    depthTest: false,
    uniforms: skyUniforms(),
    vertexShader: `
      ${SKY_FUNCTION}
      varying vec3 vColor;
      void main() {
        vColor = skyColor(normalize(position).z);
        gl_Position = projectionMatrix * mat4(mat3(modelViewMatrix)) * vec4(position, 1.0);
      }`,
    fragmentShader: 'varying vec3 vColor; void main() { gl_FragColor = vec4(vColor, 1.0); }',
  })
  return new Mesh(new SphereGeometry(1, 16, 40).rotateX(Math.PI / 2), material)
}
