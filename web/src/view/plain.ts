// Materials for WebGL in software, where every pixel costs: light, haze and colour are worked out at the corners of triangles alone.
import { BackSide, BufferAttribute, Color, DoubleSide, FrontSide, Matrix3, Mesh, ShaderMaterial, SphereGeometry, UniformsLib } from 'three'
import { UniformsUtils, Vector3, type BufferGeometry, type Matrix4 } from 'three'
import { GRID_FUNCTION, SKY_FUNCTION, SUN, gridStrength, skyUniforms, type SurfaceOptions } from './surfaces'

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
    varying vec2 vGround;
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
    #endif
    at = viewMatrix * at;
    vColor = mix(shown, fogColor, smoothstep(fogNear, fogFar, -at.z)); // the haze's colour is that of the screen
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
  void main() {
    vec3 c = vColor;
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
    defines: { ...(isGround && { GROUND: '' }), ...(isBaked && { BAKED: '' }) },
    uniforms: {
      ...UniformsUtils.clone(UniformsLib.fog),
      uColor: { value: new Color(options.color ?? 0xffffff) },
      uSun: { value: new Vector3(...SUN).normalize() },
      uOpacity: { value: opacity },
    },
  })
  material.uniforms.uGrid = gridStrength // shared with all ground, not a copy
  return material
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
