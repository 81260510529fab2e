// Written by hand, until it is generated from the document of the server.
export type paths = {}; export type operations = {};
export interface components { schemas: {
 Problem: {code:string,detail:string,requestId:string,errors?:{field:string,code:string,message:string}[]},
 FieldError: {field:string,code:string,message:string},
 TaskStatus: "pending"|"approved"|"rejected"|"cancelled",
 TaskResponse: {id:string,taskId?:string,approver:string,requester:string,title:string,description:string,decisionBy:string|null,status:"pending"|"approved"|"rejected"|"cancelled",comment?:string|null,decidedBy?:string|null,decisionMade?:string|null,decidedVia?:unknown,version?:number,metadata?:Record<string,unknown>|null,approverSecret?:string,requesterSecret?:string},
 NewTaskResponse: components["schemas"]["TaskResponse"]&{webhooks?:components["schemas"]["WebhookResponse"][]},
 WebhookResponse:{id:string,url:string,taskId:string,status:string}, WebhookTest:{id:string,success:boolean,statusCode:number|null,error:string|null,at:string,durationMs:number},
 DeliveryResponse:{id:string}, WebhookEvent:"approved"|"rejected"|"due"|"cancelled", CancelPreview:{webhooksTold:number,webhooksNotTold:number},
 RegisterWebhookRequest:{url:string,taskId:string,secret?:string|null},
 CreateTaskRequest:{title:string,requester:string,approver:string,description?:string|null,decisionBy?:string|null,metadata?:Record<string,unknown>|null,webhooks?:{url:string}[]},
 EditTaskRequest:{title?:string|null,decisionBy?:string|null},
}}
