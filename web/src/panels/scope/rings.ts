// The values of the scope: rings of equal length, all with the same times.

export const LENGTH = 20000 // points per value

export class Rings {
  private readonly time = new Float64Array(LENGTH)
  private readonly values = new Map<string, Float64Array>()
  private next = 0 // where the next point goes
  count = 0

  // Makes rings for those that are new, and drops those that nobody wants.
  keep(names: string[]): void {
    for (const name of this.values.keys()) if (!names.includes(name)) this.values.delete(name)
    for (const name of names) if (!this.values.has(name)) this.values.set(name, new Float64Array(LENGTH).fill(NaN))
    if (!names.length) this.count = 0
  }

  push(time: number, value: (name: string) => number | undefined): void {
    // Time went back: what came later has not happened.
    while (this.count && this.timeAt(this.count - 1) > time) {
      this.next = (this.next + LENGTH - 1) % LENGTH
      this.count--
    }
    if (this.count && this.timeAt(this.count - 1) === time) return
    this.time[this.next] = time
    for (const [name, ring] of this.values) ring[this.next] = value(name) ?? NaN
    this.next = (this.next + 1) % LENGTH
    this.count = Math.min(LENGTH, this.count + 1)
  }

  // Points count from the oldest.
  private slot(i: number): number {
    return (this.next - this.count + i + 2 * LENGTH) % LENGTH
  }
  timeAt(i: number): number {
    return this.time[this.slot(i)]
  }
  valueAt(name: string, i: number): number {
    return this.values.get(name)?.[this.slot(i)] ?? NaN
  }

  // The first point at or after a time.
  find(time: number): number {
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.timeAt(middle) < time) low = middle + 1
      else high = middle
    }
    return low
  }

  // The points between two times as columns for a plot of `pixels` width: where there are many more points than pixels, the least and the
  // greatest of each stretch stand for it.
  columns(names: string[], from: number, to: number, pixels: number): (number | null)[][] {
    const first = Math.max(0, this.find(from) - 1)
    const last = Math.min(this.count, this.find(to) + 1)
    const n = last - first
    const stretch = Math.max(1, Math.ceil((2 * n) / Math.max(100, 2 * pixels)))
    const columns: (number | null)[][] = [[], ...names.map(() => [])]
    const put = (column: (number | null)[], v: number) => column.push(Number.isFinite(v) ? v : null)
    if (stretch < 4) {
      for (let i = first; i < last; i++) {
        columns[0].push(this.timeAt(i))
        names.forEach((name, k) => put(columns[k + 1], this.valueAt(name, i)))
      }
      return columns
    }
    for (let i = first; i < last; i += stretch) {
      const end = Math.min(last, i + stretch)
      columns[0].push(this.timeAt(i), (this.timeAt(i) + this.timeAt(end - 1)) / 2 + 1e-9)
      names.forEach((name, k) => {
        let least = Infinity
        let most = -Infinity
        let isRising = true
        for (let j = i; j < end; j++) {
          const v = this.valueAt(name, j)
          if (v < least) least = v
          if (v > most) {
            most = v
            isRising = true
          } else if (v === least) isRising = false
        }
        put(columns[k + 1], isRising ? least : most)
        put(columns[k + 1], isRising ? most : least)
      })
    }
    return columns
  }

  csv(): string {
    const names = [...this.values.keys()]
    const lines = [['time', ...names].map((n) => (/[",\n]/.test(n) ? `"${n.replaceAll('"', '""')}"` : n)).join(',')]
    for (let i = 0; i < this.count; i++) {
      const cells = names.map((name) => this.valueAt(name, i))
      lines.push([this.timeAt(i), ...cells].map((v) => (Number.isFinite(v) ? String(v) : '')).join(','))
    }
    return lines.join('\n') + '\n'
  }
}
