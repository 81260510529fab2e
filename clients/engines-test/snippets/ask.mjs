import { Countersign, RejectedError } from "@countersign/client";

const countersign = new Countersign({ url: process.env.COUNTERSIGN_URL, key: process.env.COUNTERSIGN_KEY });
try {
  const approval = await countersign.ask({ title: "Ship order 4711?", approver: "grace@example.com", notify: true });
  console.log(`approved by ${approval.decidedBy}: ${approval.comment}`);
} catch (error) {
  if (!(error instanceof RejectedError)) throw error;
  console.log(`rejected: ${error.comment}`);
}
