// Lines every metre: on the ground where there is some, otherwise in a plane of their own.
import { Mesh, PlaneGeometry, ShaderMaterial, Vector3 } from 'three'
import type { Layer, World } from '../app'
import { GRID_FUNCTION, gridStrength } from '../view/surfaces'

const SIZE = 120 // m

const plane = new Mesh(
  new PlaneGeometry(SIZE, SIZE),
  new ShaderMaterial({
    transparent: true,
    depthWrite: false,
    uniforms: { center: { value: new Vector3() } },
    vertexShader: `
      varying vec3 vAt;
      void main() {
        vec4 at = modelMatrix * vec4(position, 1.0);
        vAt = at.xyz;
        gl_Position = projectionMatrix * viewMatrix * at;
      }`,
    fragmentShader: `
      varying vec3 vAt;
      ${GRID_FUNCTION}
      void main() {
        float lines = 0.30 * gridLines(vAt.xy, 1.0) + 0.45 * gridLines(vAt.xy, 10.0);
        float fade = 1.0 - smoothstep(6.0, ${(SIZE * 0.45).toFixed(1)}, distance(vAt, cameraPosition));
        gl_FragColor = vec4(0.72, 0.80, 0.88, lines * fade);
        #include <colorspace_fragment>
      }`,
  }),
)
plane.raycast = () => undefined
plane.renderOrder = -1

function hasGround(world: World | null): boolean {
  return world?.shapes.some((shape) => shape.kind === 'height-field' || shape.kind === 'half-space') ?? false
}
let isOn = false

const layer: Layer = {
  id: 'grid',
  title: 'Grid',
  order: 20,
  on: true,
  create(app) {
    plane.visible = false
    app.view.scene.add(plane)
  },
  world(_app, world) {
    plane.visible = isOn && !hasGround(world)
  },
  show(app, on) {
    isOn = on
    gridStrength.value = on ? 1 : 0
    plane.visible = on && app.world !== null && !hasGround(app.world)
  },
}
export default layer
