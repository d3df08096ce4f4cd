/** Reads a setting from the environment; without a default it must be there. */
export function text (name: string, fallback?: string): string {
  const value = process.env[name] ?? fallback
  if (value === undefined || value === '') throw new Error(`Set ${name}`)
  return value
}

export function number (name: string, fallback?: number): number {
  const value = Number(process.env[name] ?? fallback)
  if (!Number.isFinite(value) || value < 0) throw new Error(`Expected ${name} to be a number >= 0, got ${process.env[name]}`)
  return value
}
