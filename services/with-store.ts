import { runWithService } from './run-with-service.ts'
import { openStore, storeHelp } from './store.ts'

await runWithService({
  file: 'services/with-store.ts',
  label: 'store',
  variable: 'REDIS_URL',
  target: 'a store',
  help: storeHelp,
  open: openStore
})
