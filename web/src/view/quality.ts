// How much to draw: from the time that frames take, so that a slow machine stays smooth and a quick one shows all it can.

export interface Level {
  pixels: number // greatest number of device pixels per CSS pixel
  shadow: number // side of the shadow map; 0: none
}

const LEVELS: Level[] = [
  { pixels: 2, shadow: 2048 },
  { pixels: 1.5, shadow: 2048 },
  { pixels: 1, shadow: 1024 },
  { pixels: 1, shadow: 0 },
  { pixels: 0.75, shadow: 0 },
  { pixels: 0.5, shadow: 0 },
]
const FIRST_WEAK = 3

// ms: longer frames are too long, shorter ones leave room for more. Software has 50 ms between its pictures.
const LIMITS = { weak: { slow: 85, quick: 56 }, strong: { slow: 60, quick: 22 } }
const SLOW_TIME = 1500 // ms that frames must be slow before less is drawn
const QUICK_TIME = 6000

export class Quality {
  index: number
  private readonly best: number // where it began
  private frames = 0 // of the last second or so, the older the less they count
  private time = 0 // ms between them
  private mean = 0 // ms between those that did not have to wait
  private slowFor = 0
  private quickFor = 0
  private patience = QUICK_TIME
  private readonly limits: { slow: number; quick: number }

  constructor(isWeak: boolean) {
    this.limits = isWeak ? LIMITS.weak : LIMITS.strong
    this.index = isWeak ? FIRST_WEAK : devicePixelRatio > 1.6 ? 0 : 1
    this.best = this.index
  }

  get level(): Level {
    return LEVELS[this.index] as Level
  }

  get fps(): number {
    return this.time > 0 ? (1000 * this.frames) / this.time : 0
  }

  // A frame came `gap` ms after the one before it; `hadToWait` when there was nothing to draw for most of that. True when the level has changed.
  frame(gap: number, hadToWait: boolean): boolean {
    if (gap <= 0 || gap > 2000) return false
    const fade = Math.exp(-gap / 1000)
    this.frames = this.frames * fade + 1
    this.time = this.time * fade + gap
    if (hadToWait) return false
    this.mean = this.mean === 0 ? gap : this.mean + 0.2 * (gap - this.mean)
    this.slowFor = this.mean > this.limits.slow ? this.slowFor + gap : 0
    this.quickFor = this.mean < this.limits.quick ? this.quickFor + gap : 0
    if (this.slowFor > SLOW_TIME && this.index < LEVELS.length - 1) {
      // What was tried and was too much is not tried again soon.
      this.patience = Math.min(this.patience * 2, 120_000)
      return this.change(1)
    }
    if (this.quickFor > this.patience && this.index > this.best) return this.change(-1)
    return false
  }

  private change(step: number): boolean {
    this.index += step
    this.slowFor = 0
    this.quickFor = 0
    return true
  }
}
