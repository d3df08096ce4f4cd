import { owners } from './owners.ts'
import type { Frame } from './owners.ts'

const width = 1200
const rowHeight = 15
const leastShare = 0.003
const headHeight = 62
const charWidth = 6.2
const colours = ['#e4572e', '#f3a712', '#8ac926', '#4d96ff', '#b388eb', '#6fd6d2', '#f7d6e0', '#c9d6df', '#ffd166', '#9e9e9e', '#d3d3d3', '#eeeeee']

/** Draws trees one above the other, the callers on top. A frame tells its name and share when pointed at; the narrowest are left out. */
export function drawFlames (titled: readonly { title: string, root: Frame }[]): string {
  const parts: string[] = []
  let top = headHeight
  for (const { title, root } of titled) {
    parts.push(`<text x="4" y="${top + 14}" class="t">${escape(title)}</text>`)
    top += 20
    const draw = (frame: Frame, x: number, depth: number): void => {
      const share = frame.total / root.total
      parts.push(drawFrame(frame, x, top + depth * rowHeight, share))
      let left = x
      for (const child of [...frame.children.values()].sort((a, b) => b.total - a.total)) {
        if (child.total / root.total >= leastShare) draw(child, left, depth + 1)
        left += child.total / root.total * width
      }
    }
    draw(root, 0, 0)
    top += (depthOf(root, root.total) + 1) * rowHeight + 10
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top}" font-family="sans-serif" font-size="11">`,
    '<style>.t{font-weight:bold;font-size:13px}rect{stroke:#fff;stroke-width:.5}g:hover rect{stroke:#000}text{pointer-events:none}</style>',
    `<rect width="${width}" height="${top}" fill="#fff"/>`,
    ...drawLegend(),
    ...parts,
    '</svg>\n'
  ].join('\n')
}

function drawFrame ({ name, owner }: Frame, x: number, y: number, share: number): string {
  const frameWidth = share * width
  const letters = Math.floor((frameWidth - 4) / charWidth)
  const text = letters < 3 ? '' : `<text x="${(x + 2).toFixed(1)}" y="${y + 11}">${escape(name.slice(0, letters))}</text>`
  return `<g><title>${escape(name)} (${owner}): ${(share * 100).toFixed(1)} %</title><rect x="${x.toFixed(1)}" y="${y}" width="${frameWidth.toFixed(1)}" height="${rowHeight}" fill="${colourOf(owner)}"/>${text}</g>`
}

function drawLegend (): string[] {
  return owners.map((owner, at) => {
    const x = 4 + at % 7 * 170
    const y = 6 + Math.floor(at / 7) * 26
    return `<rect x="${x}" y="${y}" width="16" height="16" fill="${colourOf(owner)}"/><text x="${x + 22}" y="${y + 12}">${owner}</text>`
  })
}

function colourOf (owner: string): string {
  return colours[owners.findIndex(name => name === owner)] ?? '#eeeeee'
}

/** Rows below the first one, of what is wide enough to be drawn. */
function depthOf (frame: Frame, all: number): number {
  const depths = [...frame.children.values()].filter(({ total }) => total / all >= leastShare).map(child => 1 + depthOf(child, all))
  return Math.max(0, ...depths)
}

function escape (text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')
}
