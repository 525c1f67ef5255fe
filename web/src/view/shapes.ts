// Geometry of every kind of shape, in the shape's own frame, with the sizes of include/understudy/spec.h.
//
// Kinds that differ by a scale alone share one geometry of unit size, so that many of them are drawn at once.
import {
  BoxGeometry,
  BufferAttribute,
  BufferGeometry,
  CapsuleGeometry,
  ConeGeometry,
  CylinderGeometry,
  LatheGeometry,
  Matrix4,
  Quaternion,
  SphereGeometry,
  Vector2,
  Vector3,
} from 'three'
import { RoundedBoxGeometry } from 'three/addons/geometries/RoundedBoxGeometry.js'
import { ConvexGeometry } from 'three/addons/geometries/ConvexGeometry.js'
import type { Quat, ShapeInfo, Vec3 } from '../app'

export const HALF_SPACE_RADIUS = 400 // m, of the disc that stands for a half-space

export interface Solid {
  key: string // solids of the same key have the same geometry
  geometry: BufferGeometry
  scale: Vector3
}

export function matrixOf(p: Vec3, q: Quat, scale = new Vector3(1, 1, 1)): Matrix4 {
  return new Matrix4().compose(new Vector3(p[0], p[1], p[2]), new Quaternion(q[1], q[2], q[3], q[0]), scale)
}

const cache = new Map<string, BufferGeometry>()

function shared(key: string, make: () => BufferGeometry): BufferGeometry {
  let geometry = cache.get(key)
  if (!geometry) {
    geometry = make()
    geometry.userData.isShared = true
    cache.set(key, geometry)
  }
  return geometry
}

// Null for meshes, height fields, unions and intersections, which are made elsewhere, and for what has no extent.
// `isCoarse` draws round ones with fewer triangles: for software, and for crowds.
export function solidOf(shape: ShapeInfo, isCoarse = false): Solid | null {
  const [a, b, c] = shape.size
  const round = isCoarse ? 16 : 28
  const unit = (kind: string, make: () => BufferGeometry, scale: Vector3): Solid => {
    const key = `${kind} ${round}`
    return { key, geometry: shared(key, make), scale }
  }
  const ball = (): BufferGeometry => new SphereGeometry(1, round, Math.round(round * 0.65)).rotateX(Math.PI / 2)
  const one = new Vector3(1, 1, 1)
  const own = (make: () => BufferGeometry): Solid => {
    const key = `${shape.kind} ${round} ${shape.size.join(' ')} ${shape.points?.join(' ') ?? ''}`
    return { key, geometry: shared(key, make), scale: one }
  }
  switch (shape.kind) {
    case 'box':
      return unit('box', () => new BoxGeometry(1, 1, 1), new Vector3(a, b, c))
    case 'sphere':
      return unit('ball', ball, new Vector3(a, a, a))
    case 'ellipsoid':
      return unit('ball', ball, new Vector3(a, b, c))
    case 'cylinder':
      return unit('cylinder', () => new CylinderGeometry(1, 1, 1, round).rotateX(Math.PI / 2), new Vector3(a, a, b))
    case 'cone':
      return unit('cone', () => new ConeGeometry(1, 1, round).rotateX(Math.PI / 2), new Vector3(a, a, b))
    case 'capsule':
      return own(() => new CapsuleGeometry(a, b, isCoarse ? 5 : 8, round).rotateX(Math.PI / 2))
    case 'lozenge':
      return own(() => new RoundedBoxGeometry(a + 2 * c, b + 2 * c, 2 * c, 6, c))
    case 'disc':
      return own(() => disc(a, b))
    case 'triangle':
      return (shape.points?.length ?? 0) >= 9 ? own(() => sweptTriangle(shape.points as number[], a)) : null
    case 'tetrahedron':
    case 'convex':
      return (shape.points?.length ?? 0) >= 12 ? own(() => hull(shape.points as number[])) : null
    case 'half-space':
      return own(halfSpace)
    default:
      return null
  }
}

// A round plane with rings that grow with the distance: haze is worked out at its corners.
function halfSpace(): BufferGeometry {
  const radii = [0, 2, 5, 10, 18, 30, 45, 65, 90, 120, 160, 220, HALF_SPACE_RADIUS]
  const outline = radii.map((r) => new Vector2(r, 0))
  return new LatheGeometry(outline.reverse(), 64).rotateX(Math.PI / 2)
}

function pointsOf(flat: number[]): Vector3[] {
  const points: Vector3[] = []
  for (let i = 0; i + 2 < flat.length; i += 3) points.push(new Vector3(flat[i], flat[i + 1], flat[i + 2]))
  return points
}

// Points that lie in a plane have no hull: nothing is drawn.
function hull(flat: number[]): BufferGeometry {
  try {
    return new ConvexGeometry(pointsOf(flat))
  } catch {
    return new BufferGeometry()
  }
}

// A disc of radius R in x, y swept by a sphere of radius r: its outline turned about z.
function disc(R: number, r: number): BufferGeometry {
  const outline = [new Vector2(0, -r)]
  for (let i = 0; i <= 12; i++) {
    const angle = -Math.PI / 2 + (Math.PI * i) / 12
    outline.push(new Vector2(R + r * Math.cos(angle), r * Math.sin(angle)))
  }
  outline.push(new Vector2(0, r))
  return new LatheGeometry(outline, 40).rotateX(Math.PI / 2)
}

// A triangle swept by a sphere: the hull of three spheres, smooth because each point's normal leads away from its sphere's centre.
function sweptTriangle(flat: number[], r: number): BufferGeometry {
  const corners = pointsOf(flat).slice(0, 3)
  if (r <= 0) {
    const geometry = new BufferGeometry()
    const [a, b, c] = corners as [Vector3, Vector3, Vector3]
    geometry.setFromPoints([a, b, c, a, c, b])
    geometry.computeVertexNormals()
    return geometry
  }
  const ball = new SphereGeometry(r, 16, 10).getAttribute('position')
  const points: Vector3[] = []
  for (const corner of corners)
    for (let i = 0; i < ball.count; i++) points.push(new Vector3(ball.getX(i), ball.getY(i), ball.getZ(i)).add(corner))
  let geometry: BufferGeometry
  try {
    geometry = new ConvexGeometry(points)
  } catch {
    return new BufferGeometry()
  }
  const position = geometry.getAttribute('position')
  const normal = new Float32Array(position.count * 3)
  const p = new Vector3()
  for (let i = 0; i < position.count; i++) {
    p.fromBufferAttribute(position, i)
    const nearest = corners.reduce((x, y) => (x.distanceToSquared(p) <= y.distanceToSquared(p) ? x : y))
    p.sub(nearest).normalize().toArray(normal, i * 3)
  }
  geometry.setAttribute('normal', new BufferAttribute(normal, 3))
  return geometry
}
