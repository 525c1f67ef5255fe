import { Quaternion } from 'three'

// Poses between two pictures: each new one is reached in about the time that lies between pictures, so that motion is even.
export class PoseTrack {
  shown: Float32Array
  private from: Float32Array
  private to: Float32Array
  private readonly moves: Uint8Array
  private arrived = 0
  private spacing = 33 // ms between pictures, smoothed
  private lastTime = -1
  private isNew = true
  private readonly q = new Quaternion()
  private readonly r = new Quaternion()

  constructor(n: number) {
    this.shown = new Float32Array(n * 7)
    this.from = new Float32Array(n * 7)
    this.to = new Float32Array(n * 7)
    this.moves = new Uint8Array(n)
  }

  // `poses` are those of simulated time `time`, come at `now`, ms.
  take(poses: Float32Array, time: number, now: number): void {
    const wait = now - this.arrived
    if (wait > 5 && wait < 300) this.spacing += 0.15 * (wait - this.spacing)
    this.arrived = now
    const isJump = this.isNew || time < this.lastTime || wait > 1000
    this.isNew = false
    this.lastTime = time
    this.from.set(this.shown)
    this.to.set(poses)
    for (let i = 0; i < this.moves.length; i++) {
      const at = i * 7
      let way = 0
      let turn = 0
      for (let k = 0; k < 7; k++) {
        const change = Math.abs((this.to[at + k] as number) - (this.from[at + k] as number))
        if (k < 3) way += change
        else turn += change
      }
      if (way + turn > 0) this.moves[i] = 1
      // What is put elsewhere does not fly there. A wheel that turns fast stays with its rover.
      if (isJump || way > 1.5) for (let k = 0; k < 7; k++) this.from[at + k] = this.to[at + k] as number
    }
  }

  // Calls `put` for each body that is not where it was; true when more is to come.
  sample(now: number, isSmooth: boolean, put: (body: number) => void): boolean {
    const s = isSmooth ? Math.min(Math.max((now - this.arrived) / this.spacing, 0), 1) : 1
    let isMoving = false
    for (let i = 0; i < this.moves.length; i++) {
      if (!this.moves[i]) continue
      const at = i * 7
      for (let k = 0; k < 3; k++) {
        const from = this.from[at + k] as number
        this.shown[at + k] = from + s * ((this.to[at + k] as number) - from)
      }
      quaternionAt(this.q, this.from, at).slerp(quaternionAt(this.r, this.to, at), s)
      this.shown[at + 3] = this.q.w
      this.shown[at + 4] = this.q.x
      this.shown[at + 5] = this.q.y
      this.shown[at + 6] = this.q.z
      if (s >= 1) {
        for (let k = 0; k < 7; k++) this.shown[at + k] = this.to[at + k] as number
        this.moves[i] = 0
      } else isMoving = true
      put(i)
    }
    return isMoving
  }
}

function quaternionAt(q: Quaternion, poses: Float32Array, at: number): Quaternion {
  return q.set(poses[at + 4] as number, poses[at + 5] as number, poses[at + 6] as number, poses[at + 3] as number)
}
