// Height fields: from the heights to a mesh of at most a given number of triangles, with shade from slope, height and hollows.
import { BufferAttribute, BufferGeometry, Color } from 'three'
import type { ShapeInfo } from '../app'

export interface Heights {
  nx: number
  ny: number
  dx: number
  dy: number
  z: Float32Array // x fastest
}

export async function fetchHeights(shape: ShapeInfo): Promise<Heights | null> {
  const { nx, ny, asset } = shape
  if (!asset || !nx || !ny || nx < 2 || ny < 2) return null
  const answer = await fetch(asset)
  if (!answer.ok) return null
  const bytes = await answer.arrayBuffer()
  if (bytes.byteLength < nx * ny * 4) return null
  return { nx, ny, dx: shape.size[0], dy: shape.size[1], z: new Float32Array(bytes, 0, nx * ny) }
}

// Every how many points are drawn so that the mesh has at most `budget` triangles.
export function strideFor(heights: Heights, budget: number): number {
  let stride = 1
  while ((2 * (heights.nx - 1) * (heights.ny - 1)) / (stride * stride) > budget) stride++
  return stride
}

// The points that are drawn along one side: every stride-th, and always the last.
function picks(n: number, stride: number): number[] {
  const at: number[] = []
  for (let i = 0; i < n - 1; i += stride) at.push(i)
  at.push(n - 1)
  return at
}

export function fieldGeometry(heights: Heights, stride: number, rgba: number[] | null): BufferGeometry {
  const { nx, ny, dx, dy, z } = heights
  const xs = picks(nx, stride)
  const ys = picks(ny, stride)
  const n = xs.length * ys.length
  const position = new Float32Array(n * 3)
  const normal = new Float32Array(n * 3)
  const color = new Float32Array(n * 3)
  const base = new Color().setRGB(rgba?.[0] ?? 0.5, rgba?.[1] ?? 0.45, rgba?.[2] ?? 0.38, 'srgb')
  const at = (i: number, j: number): number => z[Math.min(Math.max(j, 0), ny - 1) * nx + Math.min(Math.max(i, 0), nx - 1)] as number

  let low = Infinity
  let high = -Infinity
  for (const h of z) {
    if (h < low) low = h
    if (h > high) high = h
  }
  const span = Math.max(high - low, 1e-6)

  const point = new Color()
  let k = 0
  for (const j of ys)
    for (const i of xs) {
      // Slope from the field as it is, not as it is drawn: a coarse mesh keeps the look of a fine one.
      const h = at(i, j)
      const gx = (at(i + 1, j) - at(i - 1, j)) / ((Math.min(i + 1, nx - 1) - Math.max(i - 1, 0)) * dx)
      const gy = (at(i, j + 1) - at(i, j - 1)) / ((Math.min(j + 1, ny - 1) - Math.max(j - 1, 0)) * dy)
      const length = Math.sqrt(gx * gx + gy * gy + 1)
      position[k * 3] = (i - (nx - 1) / 2) * dx
      position[k * 3 + 1] = (j - (ny - 1) / 2) * dy
      position[k * 3 + 2] = h
      normal[k * 3] = -gx / length
      normal[k * 3 + 1] = -gy / length
      normal[k * 3 + 2] = 1 / length
      // Hollows are darker, crests lighter, by how far the point stands off the mean of its surroundings.
      const r = Math.max(2, Math.round(0.3 / dx))
      const off = h - (at(i - r, j) + at(i + r, j) + at(i, j - r) + at(i, j + r)) / 4
      const crest = Math.min(Math.max(off / (0.12 * r * dx), -1), 1)
      const steep = 1 - 1 / length
      const grain = ((Math.sin(i * 12.9898 + j * 78.233) * 43758.5453) % 1) * 0.025
      const shade = 0.9 + 0.16 * crest + 0.16 * ((h - low) / span) - 0.5 * steep + grain
      point.copy(base).multiplyScalar(Math.min(Math.max(shade, 0.4), 1.3))
      point.toArray(color, k * 3)
      k++
    }

  const length = (xs.length - 1) * (ys.length - 1) * 6
  const index = n > 65_536 ? new Uint32Array(length) : new Uint16Array(length)
  let m = 0
  for (let j = 0; j + 1 < ys.length; j++)
    for (let i = 0; i + 1 < xs.length; i++) {
      const a = j * xs.length + i
      const b = a + xs.length
      index.set([a, a + 1, b + 1, a, b + 1, b], m)
      m += 6
    }
  const geometry = new BufferGeometry()
  geometry.setAttribute('position', new BufferAttribute(position, 3))
  geometry.setAttribute('normal', new BufferAttribute(normal, 3))
  geometry.setAttribute('color', new BufferAttribute(color, 3))
  geometry.setIndex(new BufferAttribute(index, 1))
  return geometry
}
