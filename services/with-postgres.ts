import { openPostgres, postgresHelp } from './postgres.ts'
import { runWithService } from './run-with-service.ts'

await runWithService({
  file: 'services/with-postgres.ts',
  label: 'postgres',
  variable: 'PG_URL',
  target: 'a database of PostgreSQL',
  help: postgresHelp,
  open: openPostgres
})
