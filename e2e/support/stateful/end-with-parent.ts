/** The test that started this process is gone, killed perhaps: nobody else would end it. */
export function endWithParent (): void {
  process.once('disconnect', () => process.exit(1))
  process.channel?.unref()
}
