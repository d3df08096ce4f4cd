export class Transactions {
  async endAll (_tenantId: string): Promise<void> {}
}
